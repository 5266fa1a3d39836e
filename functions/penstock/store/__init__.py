"""Rows in DynamoDB: one table, four conditions.

item    the one model of an item: key, version, the sparse indexes, and the row itself as JSON
codec   rows to JSON and back
table   the Store, as domain.rows describes it
"""
