"""Normal forms to Lark for llguidance, in a given argument syntax."""
