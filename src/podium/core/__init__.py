"""What every layer uses: errors, parameters, the registry, tables as text."""
