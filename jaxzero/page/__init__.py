"""Serve the page for the browser, and answer its questions."""
