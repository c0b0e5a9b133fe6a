// The systemd files: required settings, and what systemd's own tools report.

import Foundation
import Protocols
import Testing

@testable import vehicled

@Suite struct UnitTests {
  private static let service = (try? String(contentsOfFile: tree("systemd/vehicled.service"), encoding: .utf8)) ?? ""
  private static let socket = (try? String(contentsOfFile: tree("systemd/vehicled.socket"), encoding: .utf8)) ?? ""

  private func settings(_ unit: String) -> [String] {
    unit.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") && $0.contains("=") }
  }

  private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, text: String) {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }

  /// The units in a folder with a program in place of the daemon, so that they can be checked before it is installed.
  private func units(_ folder: Folder, without removed: String = "-") throws -> [String] {
    let program = try folder.write("#!/bin/sh\n", to: "vehicled")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let service = Self.service.replacingOccurrences(of: "ExecStart=/usr/bin/vehicled", with: "ExecStart=\(program)")
    let kept = service.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix(removed) }
    return [
      try folder.write(kept.joined(separator: "\n"), to: "vehicled.service"), try folder.write(Self.socket, to: "vehicled.socket"),
    ]
  }

  @Test(arguments: [
    "Type=notify", "ExecStart=/usr/bin/vehicled", "ExecReload=/bin/kill -HUP $MAINPID", "WatchdogSec=30", "Restart=on-failure",
    "RestartPreventExitStatus=2 64", "StartLimitIntervalSec=0", "OOMPolicy=continue",
    "User=vehicled", "UMask=0077", "StateDirectory=vehicled", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict",
    "ProtectHome=yes", "PrivateTmp=yes", "PrivateMounts=yes", "RemoveIPC=yes", "DevicePolicy=closed", "DeviceAllow=char-188 rw",
    "DeviceAllow=char-166 rw", "DeviceAllow=char-216 rw", "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallFilter=@system-service", "SystemCallFilter=~@privileged @resources", "SystemCallErrorNumber=EPERM",
    "SystemCallArchitectures=native", "ProtectClock=yes",
    "ProtectHostname=yes", "ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes", "ProtectControlGroups=yes",
    "ProtectProc=invisible", "ProcSubset=pid", "RestrictNamespaces=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes",
    "LimitCORE=0", "MemoryMax=256M", "TasksMax=64",
    "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "Environment=SWIFT_BACKTRACE=enable=no", "WantedBy=multi-user.target",
  ])
  func `the service contains the setting`(setting: String) {
    #expect(settings(Self.service).contains(setting))
  }

  @Test func `the daemon stops before Bluetooth and Wi-Fi, over which it stops vehicles, and does not wait for a network`() {
    let after = Set(settings(Self.service).filter { $0.hasPrefix("After=") }.flatMap { $0.dropFirst(6).split(separator: " ") })
    #expect(after.isSuperset(of: ["dbus.service", "bluetooth.service", "NetworkManager.service", "wpa_supplicant.service"]))
    #expect(after.isDisjoint(with: ["network.target", "network-online.target", "networking.service"]))
  }

  @Test func `the service sets no directive that owns the socket's directory or hides devices`() {
    let names = settings(Self.service).compactMap { $0.split(separator: "=").first }
    for trap in ["RuntimeDirectory", "PrivateDevices", "SupplementaryGroups", "ConfigurationDirectory"] {
      #expect(!names.contains(Substring(trap)), "\(trap)")
    }
  }

  @Test func `the socket has the default path and is open to all users, whose calls are checked`() throws {
    let settings = settings(Self.socket)
    let usual = try #require(Configuration.controlKeys.first { $0.name == "socket" }?.defaultValue)
    #expect(settings.contains("ListenStream=\(usual.text)"))
    for setting in [
      "FileDescriptorName=varlink", "Symlinks=/run/varlink/registry/io.vehicled", "SocketMode=0666", "SocketGroup=vehicled",
      "DirectoryMode=0755", "WantedBy=sockets.target",
    ] {
      #expect(settings.contains(setting), "\(setting)")
    }
  }

  @Test func `systemd-analyze verify reports no problems`() throws {
    let folder = try Folder()
    let verdict = try run("/usr/bin/systemd-analyze", ["verify", "--man=no"] + units(folder))
    #expect(verdict.status == 0 && verdict.text.isEmpty, "\(verdict.text)")
  }

  @Test func `systemd-analyze rates the exposure at 1.5 or less, but not without the system call filter`() throws {
    let folder = try Folder()
    let question = ["security", "--offline=true", "--threshold=15"]
    let verdict = try run("/usr/bin/systemd-analyze", question + [units(folder)[0]])
    #expect(verdict.status == 0, "\(verdict.text)")
    let weakened = try run("/usr/bin/systemd-analyze", question + [units(folder, without: "SystemCallFilter=")[0]])
    #expect(weakened.status != 0)
  }

  @Test func `the unit of the web server is valid and has an exposure of at most 1.5`() throws {
    let folder = try Folder()
    let program = try folder.write("#!/bin/sh\n", to: "vehicled-web")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let text = try String(contentsOfFile: tree("systemd/vehicled-web.service"), encoding: .utf8)
    // Pages that connect again must not start a daemon that was stopped. Sessions outlast the restart. The server needs nothing outside this
    // computer.
    for setting in [
      "PartOf=vehicled.service", "WantedBy=vehicled.service", "RuntimeDirectory=vehicled-web", "RuntimeDirectoryPreserve=yes", "UMask=0077",
      "IPAddressDeny=any", "IPAddressAllow=localhost",
    ] { #expect(settings(text).contains(setting), "\(setting)") }
    #expect(settings(text).contains { $0.hasPrefix("After=vehicled.service") })
    let unit = try folder.write(text.replacingOccurrences(of: "/usr/bin/vehicled-web", with: program), to: "vehicled-web.service")
    let verdict = try run("/usr/bin/systemd-analyze", ["verify", "--man=no", unit])
    #expect(verdict.status == 0 && verdict.text.isEmpty, "\(verdict.text)")
    let exposure = try run("/usr/bin/systemd-analyze", ["security", "--offline=true", "--threshold=15", unit])
    #expect(exposure.status == 0, "\(exposure.text)")
  }

  @Test(arguments: [
    ["vehicled-metrics.service", "vehicled-metrics.timer"], ["vehicled-history.service", "vehicled-history.socket"],
    ["vehicled-mqtt.service"], ["vehicled-can@.service", "vehicled-can.socket"], ["vehicled-alert@.service", "vehicled-alert@.path"],
  ])
  func `the units of the other services are valid and have an exposure of at most 1.5`(names: [String]) throws {
    let folder = try Folder()
    let program = try folder.write("#!/bin/sh\n", to: "program")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let units = try names.map { name in
      let text = try String(contentsOfFile: tree("systemd/\(name)"), encoding: .utf8)
        .replacing(/(?m)^ExecStart=\/(usr\/bin|etc\/vehicled\/alerts)\/[\w%-]+/, with: "ExecStart=\(program)")
      return try folder.write(text, to: name)
    }
    let verdict = try run("/usr/bin/systemd-analyze", ["verify", "--man=no"] + units)
    #expect(verdict.status == 0 && verdict.text.isEmpty, "\(verdict.text)")
    let exposure = try run("/usr/bin/systemd-analyze", ["security", "--offline=true", "--threshold=15", units[0]])
    #expect(exposure.status == 0, "\(exposure.text)")
  }

  /// ProtectClock= also denies reading the state of the clock: batches and recorded values would never count as synchronised.
  @Test(arguments: ["vehicled-history", "vehicled-mqtt"]) func `services that need it can read whether the clock is synchronised`(
    name: String
  ) throws {
    let settings = settings(try String(contentsOfFile: tree("systemd/\(name).service"), encoding: .utf8))
    #expect(settings.contains("SystemCallFilter=adjtimex clock_adjtime") && !settings.contains("ProtectClock=yes"))
  }

  /// After five raises within ten seconds, systemd would no longer watch the file of the alert.
  @Test func `the program of an alert has no limit of starts`() throws {
    #expect(
      settings(try String(contentsOfFile: tree("systemd/vehicled-alert@.service"), encoding: .utf8)).contains("StartLimitIntervalSec=0"))
  }

  @Test func `udev grants a serial port by its name in the configuration, never by the chip's USB IDs`() throws {
    let rules = try String(contentsOfFile: tree("systemd/vehicled.udev"), encoding: .utf8)
    let lines = rules.split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(!rules.contains("idVendor") && !rules.contains("ID_VENDOR") && !rules.contains("SYSTEMD_WANTS"))
    let grants = lines.filter { $0.contains("GROUP=") }
    #expect(grants == ["GROUP=\"vehicled\", MODE=\"0660\", ENV{ID_MM_DEVICE_IGNORE}=\"1\", ENV{ID_MM_PORT_IGNORE}=\"1\""])
    let asked = lines.filter { $0.contains("PROGRAM==") }
    #expect(asked.count == 2 && asked.allSatisfy { $0.contains("$env{ID_SERIAL}") || $0.contains("$env{ID_PATH}") })
  }

  @Test func `the Debian changelog starts with this version`() throws {
    let changes = try String(contentsOfFile: tree("systemd/debian/changelog"), encoding: .utf8)
    #expect(changes.hasPrefix("vehicled (\(Protocols.version)) "))
  }

  @Test func `sysusers creates the users with their groups`() throws {
    let folder = try Folder()
    let services: Set = ["vehicled-history", "vehicled-mqtt", "vehicled-web"]
    for name in services.union(["vehicled"]) {
      try folder.write(String(contentsOfFile: tree("systemd/\(name).sysusers"), encoding: .utf8), to: "usr/lib/sysusers.d/\(name).conf")
    }
    try folder.write("", to: "etc/passwd")
    let outcome = try run("/usr/bin/systemd-sysusers", ["--root=\(folder.path)"])
    #expect(outcome.status == 0, "\(outcome.text)")
    let users = try String(contentsOfFile: folder.path + "/etc/passwd", encoding: .utf8)
    let groups = try String(contentsOfFile: folder.path + "/etc/group", encoding: .utf8)
    #expect(users.contains("vehicled:x:") && users.contains("nologin"))
    #expect(groups.contains(/(?m)^bluetooth:.*:vehicled$/))
    #expect(groups.contains(/(?m)^dialout:.*:vehicled$/) && groups.contains(/(?m)^vehicled:/))
    // Only the services observe by default, and they may do no more.
    for service in services { #expect(users.contains("\(service):x:")) }
    let observers = groups.firstMatch(of: /(?m)^vehicled-observe:x:\d+:(.*)$/)?.1.split(separator: ",") ?? []
    #expect(Set(observers.map(String.init)) == services)
    #expect(!groups.contains(/(?m)^vehicled:x:\d+:.*vehicled-(history|mqtt|web)/))
  }
}
