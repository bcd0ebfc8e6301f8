"""Checks of a diagnosis: each looks for one group of damages, and changes nothing."""
