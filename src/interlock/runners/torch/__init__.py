"""Hugging Face safetensors models through torch, on whatever device torch has: forward pass, mask, selection and the
acceptance of drafts happen there, and only token ids come back."""
