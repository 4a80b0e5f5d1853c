"""Routing in compiled code: `plan` is what it works on, `insertion` and `rounds` change it, `lanes` is called."""
