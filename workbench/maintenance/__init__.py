"""Damage in the files of a workspace with its fix; what a workspace no longer needs; its copy."""
