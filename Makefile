# All commands for development and packaging; the targets of the build are in Package.swift. Each target installs what it needs, except
# `build` and `install`, which are for packagers and change nothing outside this directory and DESTDIR.

prefix = /usr
sysconfdir = /etc
DESTDIR =
# The run time of each fuzzer, in seconds.
FUZZ_SECONDS = 600
# The run time of the soak test, in seconds.
SOAK_SECONDS = 3600
fuzzers = dialogue replies elcomm vesc car answers varlink can blocks toml

export PATH := $(PATH):/opt/swift/usr/bin
programs = vehicled vehicled-history vehicled-mqtt vehicled-web vehiclectl vehiclesim
pages = man1/vehiclectl.1 man1/vehiclesim.1 man5/vehicled.toml.5 man7/io.vehicled.7 man8/vehicled.8 man8/vehicled-history.8 man8/vehicled-mqtt.8 man8/vehicled-web.8
services = vehicled vehicled-history vehicled-mqtt vehicled-web
release = $(CURDIR)/.build/release
# The programs as they are installed, and the library with the Swift runtime, which they share (systemd/link.py).
linked = $(CURDIR)/.build/linked
library = $(linked)/lib/vehicled/libvehicled.so
swift_files = Package.swift Sources Tests
units = vehicled.service vehicled.socket vehicled-can.socket vehicled-can@.service vehicled-metrics.service vehicled-metrics.timer vehicled-history.service vehicled-history.socket \
  vehicled-alert@.path vehicled-alert@.service vehicled-mqtt.service vehicled-web.service
# The files of the plugin for Cockpit: its own, and those of the page that it shares.
page = Sources/vehicled-web/Page
plugin = $(wildcard Sources/vehicled-web/Cockpit/*) $(page)/style.css $(page)/icon.svg \
  $(filter-out $(page)/main.js,$(wildcard $(page)/*.js))
sharedir = $(DESTDIR)$(prefix)/share
# The directory of units, udev rules and presets; Debian 12 requires /lib.
libdir = $(prefix)/lib
unitdir = $(DESTDIR)$(libdir)/systemd/system

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: build help setup setup-build setup-bench setup-soak setup-deb lint protocols test test-vm test-can test-debian13 test-resets test-home-assistant sanitize soak demo bench fuzzers fuzz fuzz-short install deb check-install clean

build: ## build the programs for release
	swift build -c release --static-swift-stdlib
	@$(MAKE) -s $(library)

$(library): systemd/link.py $(programs:%=$(release)/%)
	@rm -rf $(linked)
	python3 $< $(release) $(linked) $(programs)

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## install the build and test dependencies (Debian 12 or 13; uses apt, sudo and a Python venv)
	@Tests/Setup/setup.sh

setup-build:
	@Tests/Setup/setup.sh build

setup-deb:
	@Tests/Setup/setup.sh deb

setup-bench:
	@Tests/Setup/setup.sh bench

setup-soak:
	@Tests/Setup/setup.sh soak

lint: ## check the format of the Swift files
	swift format lint --strict --parallel --recursive $(swift_files)

protocols: export VEHICLED_PROTOCOLS_ONLY = 1
protocols: ## build only what needs no Swift packages, and run the tests that match FILTER=REGEX
	swift test --scratch-path .build/protocols $(if $(FILTER),--filter '$(FILTER)')

# The tests of the programs mostly wait, and those of the modules mostly compute, so they run side by side.
system_tests = '^SystemTests\.'
# $(1): the directory of the programs; $(2): that of the tests
tests_of = env NO_COLOR=1 SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=4 VEHICLED_PROGRAMS=$(1) \
  VEHICLED_PYTHON=$(CURDIR)/.venv/bin/python $(2)/vehicledPackageTests.xctest --testing-library swift-testing
run_tests = $(call tests_of,$(linked)/bin,$(CURDIR)/.build/debug)

# The release build uses one processor much of the time, so the fuzzers are built beside it.
test: setup lint ## run the same checks as CI
	@mkdir -p .build; nice $(MAKE) -s fuzzers $(fuzz_short) >.build/fuzzers.log 2>&1 & fuzzers=$$!; $(MAKE) build check-install || { kill $$fuzzers; exit 1; }; \
	  wait $$fuzzers || { cat .build/fuzzers.log; exit 1; }
	swift build --build-tests
	@rm -f .build/test-failed
	@{ nice $(run_tests) --skip $(system_tests) >.build/module-tests.log 2>&1 || echo failed >.build/test-failed; } & modules=$$!; trap 'pkill -P $$modules' INT TERM; \
	  { $(run_tests) --filter $(system_tests) 2>&1 || echo failed >.build/test-failed; } | tee .build/system-tests.log; wait $$modules; cat .build/module-tests.log; \
	  if [ -e .build/test-failed ]; then echo "failed:"; cat .build/*-tests.log >.build/test.log; \
	  grep -E '^ *(✘|↳)' .build/test.log | cut -c 1-600; grep -E -A 16 'Fatal error|Program crashed|crashed:$$' .build/test.log | cut -c 1-240 | head -n 60; exit 1; fi
	@$(MAKE) -s fuzz-short

test-vm: setup deb ## test the Debian packages in a Debian guest with systemd, journald, bluetoothd, NetworkManager and Cockpit (needs root once)
	@Tests/Setup/setup.sh vm
	@.venv/bin/python Tests/VM/machine.py build .build/vm
	@code=0; .venv/bin/python Tests/VM/machine.py web .build/vm .build/deb || code=$$?; \
	  .venv/bin/python Tests/VM/machine.py run .build/vm .build/deb $(linked)/bin/vehiclesim || code=$$?; exit $$code

# The number of exchanges with the kernel's ISO-TP in test-can.
EXCHANGES = 1000000
test-can: setup deb .build/isotp-oracle .build/bench/fastelm ## test links to CAN interfaces in the same guest, with EXCHANGES=1000000 messages to the kernel's ISO-TP (needs root once)
	@Tests/Setup/setup.sh vm
	@.venv/bin/python Tests/VM/machine.py build .build/vm
	@.venv/bin/python Tests/VM/machine.py can .build/vm .build/deb .build/isotp-oracle $(EXCHANGES) .build/bench/fastelm

.build/bench/fastelm: Tests/Bench/fastelm.c Tests/Bench/bench.h
	@mkdir -p $(@D)
	clang -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror $< -o $@

test-debian13: setup deb ## test the packages of Debian 12 in a Debian 13 guest, and in one that is upgraded from 12 to 13 (needs root once)
	@Tests/Setup/setup.sh vm
	@.venv/bin/python Tests/VM/machine.py build .build/vm-trixie trixie
	@.venv/bin/python Tests/VM/machine.py build .build/vm-upgrade bookworm trixie
	@code=0; .venv/bin/python Tests/VM/machine.py release .build/vm-trixie .build/deb || code=$$?; \
	  .venv/bin/python Tests/VM/machine.py upgrade .build/vm-upgrade .build/deb || code=$$?; exit $$code

# How often test-resets resets the guest.
RESETS = 20
test-resets: setup deb ## reset the guest RESETS=20 times while it records a car, and check what was lost (needs root once)
	@Tests/Setup/setup.sh vm
	@.venv/bin/python Tests/VM/machine.py build .build/vm
	@.venv/bin/python Tests/VM/machine.py reset .build/vm .build/deb $(RESETS)

test-home-assistant: setup-build build ## test the MQTT bridge with Home Assistant, mosquitto and simulated devices (needs root)
	@Tests/Setup/setup.sh home-assistant
	@python3 Tests/HomeAssistant/test_home_assistant.py --programs $(linked)/bin

# The soak test looks for leaks: the leak sanitizer reports Swift's tagged pointers as leaks. The programs that tests start write their
# reports to files of their own. Optimised code is several times faster under a sanitizer, and tests of programs need its speed.
sanitize: export ASAN_OPTIONS = detect_leaks=0 log_path=$(CURDIR)/.build/address-report
sanitize: export TSAN_OPTIONS = log_path=$(CURDIR)/.build/thread-report
sanitize: export SWIFT_BACKTRACE = enable=no
sanitize: setup .build/tsan-mutex.o ## run all tests under AddressSanitizer, then under ThreadSanitizer (over an hour each on two processors)
	@rm -f .build/*-report.*; result=0; for kind in address thread; do linked=; [ $$kind = address ] || linked='-Xlinker $(CURDIR)/.build/tsan-mutex.o'; \
	  echo "sanitize: $$kind: building"; \
	  swift build --build-tests --sanitize=$$kind --scratch-path .build/$$kind -Xswiftc -O $$linked >.build/$$kind-build.log 2>&1 || { tail -n 40 .build/$$kind-build.log; exit 1; }; \
	  for part in skip filter; do log=.build/$$kind-$$part.log; \
	  $(call tests_of,$(CURDIR)/.build/$$kind/debug,$(CURDIR)/.build/$$kind/debug) --$$part $(system_tests) >$$log 2>&1 || result=1; \
	  grep -E '^ *(✘|↳)' $$log | cut -c 1-600; echo "sanitize: $$kind: $$(tail -n 1 $$log)"; done; \
	  cat .build/$$kind-report.* 2>/dev/null && result=1; done; exit $$result

.build/tsan-mutex.o: Tests/Setup/tsan-mutex.c
	@mkdir -p $(@D)
	clang -std=c11 -Wall -Wextra -Werror -O1 -c $< -o $@

soak: setup-soak build ## run all services and every kind in simulation with faults and many clients, for SOAK_SECONDS=3600
	@.venv/bin/python Tests/Soak/soak.py --seconds $(SOAK_SECONDS) --bin $(linked)/bin

# Optimisation would take longer than all else. Whole modules, as in a release build, need about half the time of a debug build, which
# checks the types of many files more than once.
demo: setup-build ## watch a simulated car, polled at 20 Hz; with WEB=1 in a browser
	@echo "Building the programs of the demo, which takes a few minutes the first time"
	@VEHICLED_DEMO=$(if $(WEB),web,terminal) swift build --scratch-path .build/demo -c release -debug-info-format none \
	  -Xswiftc -Onone -Xswiftc -no-emit-module-separately-wmo
	@Tests/Demo/demo.sh .build/demo/release

bench: setup-bench build ## measure the release build against the minimum that the hardware allows (BENCH="web page" names benchmarks)
	python3 Tests/Bench/bench.py $(BENCH)

vehicles = $(wildcard Sources/Protocols/OBD/Vehicles/*)
can_vehicles = $(wildcard Sources/Protocols/CANBus/Vehicles/*)
tables = $(patsubst %,.build/tables/%.swift,$(basename $(notdir $(vehicles))))
can_tables = $(patsubst %,.build/tables/%.swift,$(basename $(notdir $(can_vehicles))))
$(tables) $(can_tables) &: Sources/VehicleTables/generate.py $(vehicles) $(can_vehicles)
	python3 $< $(@D) $(vehicles) $(can_vehicles)

fuzzers: $(tables) $(can_tables)
	@printf '%s\n' $(fuzzers:%=$(fuzz_dir)/%) | xargs -P 2 -n 1 $(MAKE) -s

fuzz_dir = .build/fuzz
fuzz_optimisation = -O
fuzz: setup build fuzzers ## build and run the fuzzers, two at a time, FUZZ_SECONDS=600 each
	@python3 Tests/Fuzz/seeds.py $(fuzz_dir)/corpus
	@cd $(fuzz_dir) && printf '%s\n' $(fuzzers) | ASAN_OPTIONS=detect_leaks=0 SWIFT_BACKTRACE=enable=no xargs -P 2 -I @ sh -c ' \
	  nice ./@ -max_total_time=$(FUZZ_SECONDS) -max_len=2000 -timeout=10 -dict=corpus/words -artifact_prefix=@- -print_final_stats=1 \
	  corpus/@ >@.log 2>&1 && echo "fuzz: @: $$(tail -n 12 @.log | grep -m 1 ^Done)" || { tail -n 40 @.log >&2; exit 1; }'
	@VEHICLED_PROGRAMS=$(linked)/bin python3 Tests/Fuzz/web_requests.py $(FUZZ_SECONDS)

# To optimise these would take longer than to run them. Without optimisation, assertions are checked.
fuzz_short = fuzz_dir=.build/fuzz-short fuzz_optimisation=-Onone FUZZ_SECONDS=10
fuzz-short: ## build the fuzzers without optimisation and run them for ten seconds each, as part of make test
	@$(MAKE) -s fuzz $(fuzz_short)

# The compiler writes its module to the current directory, so each fuzzer has its own. A fuzzer is one module, so that its files are
# optimised together.
fuzz_warnings = -warnings-as-errors
fuzz_swift = mkdir -p $@.module && cd $@.module && swiftc -parse-as-library -swift-version 6 $(fuzz_warnings) -module-name Protocols -package-name vehicled $(fuzz_optimisation) -wmo -g \
  -sanitize=fuzzer,address -use-ld=lld

fuzz_session = Tests/Fuzz/FuzzSession.swift Tests/Fuzz/Invariants.swift

# What every kind of device can use.
common = $(wildcard Sources/Protocols/*.swift Sources/Protocols/CAN/*.swift)
obd = $(common) $(wildcard Sources/Protocols/OBD/*.swift Sources/Protocols/OBD/*/*.swift) $(tables)

$(fuzz_dir)/dialogue: Tests/Fuzz/Dialogue.swift $(fuzz_session) $(obd)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

$(fuzz_dir)/replies: Tests/Fuzz/Replies.swift Tests/Fuzz/Invariants.swift $(obd)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

# Files of other targets import Protocols, of which they are part here.
$(fuzz_dir)/answers $(fuzz_dir)/varlink $(fuzz_dir)/blocks: fuzz_warnings = -suppress-warnings

longboard = $(common) $(wildcard Sources/Protocols/Longboard/*.swift Sources/Protocols/Longboard/*/*.swift)

$(fuzz_dir)/elcomm: Tests/Fuzz/ELComm.swift $(fuzz_session) $(longboard)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

$(fuzz_dir)/vesc: Tests/Fuzz/VESC.swift $(fuzz_session) $(longboard)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

$(fuzz_dir)/car: Tests/Fuzz/Car.swift $(fuzz_session) $(common) $(wildcard Sources/Protocols/Car/*.swift Sources/Protocols/Car/*/*.swift)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

$(fuzz_dir)/answers: Tests/Fuzz/Answers.swift Tests/Fuzz/Invariants.swift \
  $(wildcard $(addprefix Sources/Protocols/,*.swift $(addsuffix /*.swift,JSON Weather Toy Health HeartRate Position CAN CANBus OBD OBD/*)) Sources/SignalImport/*.swift Sources/SignalImport/*/*.swift) $(tables) $(can_tables)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

# Without Interface.swift, which needs a resource that only SwiftPM embeds.
$(fuzz_dir)/varlink: Tests/Fuzz/Varlink.swift Tests/Fuzz/Invariants.swift \
  $(filter-out %/Interface.swift,$(common) $(wildcard Sources/Protocols/JSON/*.swift Sources/Varlink/*.swift))
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

$(fuzz_dir)/can: Tests/Fuzz/CAN.swift Tests/Fuzz/Invariants.swift $(common)
	$(fuzz_swift) $(abspath $^) -o ../$(@F)

$(fuzz_dir)/blocks: Tests/Fuzz/Blocks.swift Tests/Fuzz/Invariants.swift $(wildcard Sources/SampleBlocks/*.swift) $(common)
	$(fuzz_swift) -I $(abspath Sources/CDeflate) $(abspath $^) -ldeflate -o ../$(@F)

# Compares the messages of several frames with those of the kernel, in the guest of test-can.
.build/isotp-oracle: Tests/Oracle/ISOTPOracle.swift Sources/Peers/SeededRandom.swift $(common)
	mkdir -p $@.module && cd $@.module && swiftc -parse-as-library -swift-version 6 -warnings-as-errors -module-name ISOTPOracle -package-name vehicled -O -wmo \
	  -static-stdlib -use-ld=lld $(abspath $^) -o ../$(@F)

$(fuzz_dir)/toml: Tests/Fuzz/TOML.cpp Sources/CToml/ctoml.cpp Sources/CToml/include/CToml.h
	@mkdir -p $(@D)
	clang++ -std=c++17 -O1 -g -fuse-ld=lld -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -ISources/CToml/include \
	  Tests/Fuzz/TOML.cpp Sources/CToml/ctoml.cpp -o $@

# The files to which the documentation links.
cited_files = etc/vehicled.toml etc/signals.d/example.toml Tests/Bench/README.md Sources/Varlink/io.vehicled.history.varlink $(vehicles) $(can_vehicles)

install: ## install the files under DESTDIR and prefix (build first)
	@test -x $(linked)/bin/vehicled || { echo 'install: no programs found; run make build first' >&2; exit 1; }
	install -d $(DESTDIR)$(prefix)/bin $(unitdir) $(DESTDIR)$(prefix)/lib/sysusers.d $(DESTDIR)$(sysconfdir)/vehicled/vehicled.toml.d $(DESTDIR)$(sysconfdir)/vehicled/signals.d $(DESTDIR)$(sysconfdir)/vehicled/alerts
	install -s -m 755 $(programs:%=$(linked)/bin/%) $(DESTDIR)$(prefix)/bin
	install -d $(DESTDIR)$(prefix)/lib/vehicled
	install -s -m 644 $(library) $(DESTDIR)$(prefix)/lib/vehicled
	for unit in $(units); do sed 's,^ExecStart=/usr/,ExecStart=$(prefix)/,; s,file:///usr/,file://$(prefix)/,' systemd/$$unit >$(unitdir)/$$unit && chmod 644 $(unitdir)/$$unit; done
	install -d $(sharedir)/polkit-1/actions
	install -m 644 systemd/io.vehicled.policy $(sharedir)/polkit-1/actions
	install -d $(DESTDIR)$(libdir)/udev/rules.d $(DESTDIR)$(prefix)/lib/systemd/system-preset
	for service in $(services); do \
	  install -m 644 systemd/$$service.sysusers $(DESTDIR)$(prefix)/lib/sysusers.d/$$service.conf && \
	  install -m 644 systemd/$$service.preset $(DESTDIR)$(prefix)/lib/systemd/system-preset/90-$$service.preset || exit 1; done
	install -m 644 systemd/vehicled.udev $(DESTDIR)$(libdir)/udev/rules.d/70-vehicled.rules
	test -e $(DESTDIR)$(sysconfdir)/vehicled/vehicled.toml || install -m 644 etc/vehicled.toml $(DESTDIR)$(sysconfdir)/vehicled
	test -e $(DESTDIR)$(sysconfdir)/vehicled/history.toml || install -m 644 etc/history.toml $(DESTDIR)$(sysconfdir)/vehicled
	test -e $(DESTDIR)$(sysconfdir)/vehicled/mqtt.toml || install -m 644 etc/mqtt.toml $(DESTDIR)$(sysconfdir)/vehicled
	test -e $(DESTDIR)$(sysconfdir)/vehicled/web.toml || install -m 644 etc/web.toml $(DESTDIR)$(sysconfdir)/vehicled
	test -e $(DESTDIR)$(sysconfdir)/vehicled/signals.d/example.toml || install -m 644 etc/signals.d/example.toml $(DESTDIR)$(sysconfdir)/vehicled/signals.d
	install -d $(sharedir)/doc/vehicled $(sharedir)/bash-completion/completions $(sharedir)/zsh/vendor-completions $(sharedir)/fish/vendor_completions.d
	install -m 644 README.md ARCHITECTURE.md SECURITY.md CONTRIBUTING.md LICENSE $(sharedir)/doc/vehicled
	install -d $(sharedir)/doc/vehicled/docs
	install -m 644 docs/*.md docs/*.svg docs/*.png $(sharedir)/doc/vehicled/docs
	for file in $(cited_files); do install -D -m 644 $$file $(sharedir)/doc/vehicled/$$file || exit 1; done
	for file in $$(cd Sources/vehicled-web/Page && find . -type f ! -name '.*'); do \
	  install -D -m 644 Sources/vehicled-web/Page/$$file $(sharedir)/vehicled/web/$$file || exit 1; done
	install -d $(sharedir)/cockpit/vehicled
	install -m 644 $(plugin) $(sharedir)/cockpit/vehicled
	install -d $(sharedir)/doc/vehicled-mqtt/examples/fleet
	install -m 755 etc/fleet/*.py $(sharedir)/doc/vehicled-mqtt/examples/fleet
	install -d $(addprefix $(sharedir)/man/,$(dir $(pages)))
	for page in $(pages); do install -m 644 systemd/man/$${page#*/} $(sharedir)/man/$$page || exit 1; done
	$(linked)/bin/vehiclectl completions bash | sed "1{/^#!/d}" >$(sharedir)/bash-completion/completions/vehiclectl
	$(linked)/bin/vehiclectl completions zsh >$(sharedir)/zsh/vendor-completions/_vehiclectl
	$(linked)/bin/vehiclectl completions fish >$(sharedir)/fish/vendor_completions.d/vehiclectl.fish
	@test -n '$(DESTDIR)' || echo 'Next: systemd-sysusers && systemctl daemon-reload && systemctl enable --now vehicled.socket vehicled.service vehicled-history.socket vehicled-history.service'

# The version contains the time of the build: programs work only with the library of the same build, and apt would not replace an equal version.
deb: setup-deb build ## build the Debian packages
	@rm -rf .build/deb && mkdir -p .build/deb/source && cp -a systemd/debian .build/deb/source/debian
	@sed -i "1s/)/+$$(date -u -d @$${SOURCE_DATE_EPOCH:-$$(date +%s)} +%Y%m%d%H%M%S))/" .build/deb/source/debian/changelog
	@cd .build/deb/source && PROJECT=$(CURDIR) dpkg-buildpackage -us -uc -b --no-check-builddeps >../build.log 2>&1 || { tail -n 40 ../build.log >&2; exit 1; }
	@lintian --fail-on error,warning --allow-root .build/deb/*.changes
	@cd .build/deb && for package in *.deb; do echo "$$package: $$(stat -c %s $$package) $$(dpkg-deb -f $$package Installed-Size)"; done | \
	  awk '{ printf "%s %.1f MB to download, %.1f MB installed\n", $$1, $$2 / 1e6, $$3 * 1024 / 1e6; download += $$2; installed += $$3 } \
	  END { printf "all: %.1f MB to download, %.1f MB installed\n", download / 1e6, installed * 1024 / 1e6 }'

# Installs into a separate directory, and checks that it is complete, that bash can parse the completions, and that the programs are small:
# one import can link ICU in, which adds 40 MB.
check-install: root = .build/install
check-install:
	@rm -rf $(root)
	@$(MAKE) -s install DESTDIR=$(root) prefix=/usr
	@grep -qx 'ExecStart=/usr/bin/vehicled' $(root)/usr/lib/systemd/system/vehicled.service
	@grep -qx 'ExecStart=/usr/bin/vehicled-history' $(root)/usr/lib/systemd/system/vehicled-history.service
	@grep -qx 'ExecStart=/usr/bin/vehicled-mqtt' $(root)/usr/lib/systemd/system/vehicled-mqtt.service
	@grep -qx 'ExecStart=/usr/bin/vehicled-web --config /etc/vehicled/web.toml' $(root)/usr/lib/systemd/system/vehicled-web.service
	@diff -r Sources/vehicled-web/Page $(root)/usr/share/vehicled/web
	@for file in $(notdir $(plugin)); do test -s $(root)/usr/share/cockpit/vehicled/$$file || { echo "check-install: $$file is missing" >&2; exit 1; }; done
	@$(root)/usr/bin/vehicled --check-config --config $(root)/etc/vehicled/vehicled.toml
	@$(root)/usr/bin/vehicled-history --check-config --config $(root)/etc/vehicled/history.toml
	@$(root)/usr/bin/vehicled-mqtt --check-config --config $(root)/etc/vehicled/mqtt.toml
	@$(root)/usr/bin/vehicled-web --check-config --config $(root)/etc/vehicled/web.toml
	@bash -n $(root)/usr/share/bash-completion/completions/vehiclectl
	@for page in $(pages); do test -s $(root)/usr/share/man/$$page || { echo "check-install: $$page is missing" >&2; exit 1; }; done
	@for page in docs/*.md; do test -s $(root)/usr/share/doc/vehicled/$$page || { echo "check-install: $$page is missing" >&2; exit 1; }; done
	@cd $(root)/usr/share/doc/vehicled && grep -roE --include='*.md' '\]\([^):#]+[)#]' . | sed 's/:](/ /; s/.$$//' | while read -r page target; do \
	  test -e "$$(dirname $$page)/$$target" || { echo "check-install: $$page links to $$target, which is not installed" >&2; exit 1; }; done
	@! command -v mandoc >/dev/null || mandoc -T lint -W warning $(pages:%=$(root)/usr/share/man/%)
	@size=$$(cat $(root)/usr/bin/* $(root)/usr/lib/vehicled/* | wc -c); \
	  test $$size -lt 50000000 || { echo "check-install: programs and library have $$size bytes; check whether ICU is linked in" >&2; exit 1; }

clean: ## remove the build and the Python venv
	rm -rf .build .venv
