"""The network: its inputs, trunks and layers."""
