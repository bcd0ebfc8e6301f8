"""What goes over the wire: the body, its signature, the request, and the guard that says where to."""
