"""Pages: each resource of the site, for a person as a page and for a program as JSON, at one address."""
