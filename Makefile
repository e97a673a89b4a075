# Every verb sets up what it needs, once; the second time it is quick.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/pip --disable-pip-version-check
SETUP := $(VENV)/.setup

.PHONY: help setup run test lint bench docs clean
help:
	@echo "make run | test | lint | bench | docs | setup | clean"

setup: $(SETUP)

$(SETUP): setup.cfg setup.py pyproject.toml $(wildcard sim/kernel/*.cpp sim/kernel/*.hpp)
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -q --upgrade pip
	@$(PIP) install -q -e '.[test,lint]'
	@touch $@

test: setup
	$(VENV)/bin/python -m pytest -n auto

clean:
	rm -rf $(VENV) build out *.egg-info sim/*.so
