"""Recording data: an online agent while it learns, a saved policy, a script, a uniform policy."""
