"""What every page shares: templates, addresses of scripts and styles, static files, the page of a problem."""
