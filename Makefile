# The two commands of a fresh machine are `make up` and `make test`.
