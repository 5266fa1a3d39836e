#!/bin/bash
#: name = "migrations"
#: variety = "basic"
#: timeout = 900
#:
#: [resources.old]
#: type = "database"
#: options = { version = 14, extensions = ["hstore", "pg_trgm"] }
#:
#: [resources.new]
#: type = "database"
#: [resources.new.options]
#: version = 17
#: size.gib = 1.5
#:
#: [env]
#: SQL = """
#:   select 1;
#:   select "#: no";
#: """

eval "$(bmat resource env old)"
./migrate
