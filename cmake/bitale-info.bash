# Completion of bitale-info's options in bash.
complete -W "--json --version --cache-clear --help" bitale-info
