"""Notes kept while a session runs: one page of ten sections, by the engine, a model and people.

`page` is the page and how it is read and written, `account` what the engine can say without a
model, `asking` what a model is asked, `keeping` what stays when notes stand for history. When a
page is brought up to date, and by whom, is decided by the stages.
"""
