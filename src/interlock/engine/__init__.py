"""One model in a process of its own: ``client`` here, ``worker`` there, ``core`` the step."""
