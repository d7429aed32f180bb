"""All that exists for arXiv:2103.09575 alone: its experiments, its theory, its claims, their pages.

It imports the library; the library never imports it.
"""
