"""The network: what it is shown, its trunks and layers."""
