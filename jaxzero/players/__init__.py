"""Choose moves by players of all kinds, behind one interface."""
