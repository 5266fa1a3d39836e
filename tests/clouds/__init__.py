"""The `libcloud` factory, at a cloud that can do what real ones do."""
