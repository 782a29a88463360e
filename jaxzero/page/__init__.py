"""The page in the browser, and the server behind it."""
