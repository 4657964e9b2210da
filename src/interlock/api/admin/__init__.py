"""The admin API, under ``/admin/api``: what an operator sees and sets."""
