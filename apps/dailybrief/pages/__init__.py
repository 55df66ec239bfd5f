"""Pages: each resource of the site, as HTML for browsers and as JSON for programs, at the same URL."""
