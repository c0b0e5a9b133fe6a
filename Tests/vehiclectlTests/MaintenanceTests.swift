// doctor without the daemon, and redaction of reports.

import Testing

@testable import vehiclectl

@Suite struct MaintenanceTests {
  @Test(arguments: [
    ([:], "warning", "systemd is not running"), (["LoadState": "not-found"], "warning", "not installed"),
    (["LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"], "ok", "is running"),
    (["LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "enabled"], "failed", "is not running"),
    (["LoadState": "loaded", "ActiveState": "failed", "Result": "watchdog"], "failed", "failed: result watchdog"),
    (["LoadState": "loaded", "ActiveState": "failed", "Result": "start-limit-hit"], "failed", "too many times"),
    (["LoadState": "masked", "ActiveState": "inactive"], "failed", "masked"),
  ])
  func `the unit's state is reported with its remedy`(_ properties: [String: String], _ state: String, _ words: String) {
    let findings = LocalChecks.unit(properties.isEmpty ? nil : properties, [:])
    #expect(findings.first?.state == state && findings.first?.text.contains(words) == true, "\(findings)")
    #expect(state != "failed" || findings.allSatisfy { $0.remedy?.contains("systemctl") == true })
  }

  @Test func `restarts and disabled units are warnings`() {
    let service = [
      "LoadState": "loaded", "ActiveState": "active", "UnitFileState": "disabled", "NRestarts": "3", "NeedDaemonReload": "yes",
    ]
    let findings = LocalChecks.unit(service, ["UnitFileState": "disabled"])
    #expect(findings.map(\.state) == ["ok", "warning", "warning", "warning", "warning"])
    #expect(findings[1].text.contains("3 times") && findings[2].remedy == "sudo systemctl enable vehicled.service")
    #expect(findings[3].remedy == "sudo systemctl enable vehicled.socket" && findings[4].remedy == "sudo systemctl daemon-reload")
  }

  @Test func `other services are reported if they are used`() {
    func finding(_ properties: [String: String]?) -> String? {
      LocalChecks.service("vehicled-mqtt", properties).map { "\($0.state): \($0.text)" }
    }
    let active = ["LoadState": "loaded", "ActiveState": "active"]
    #expect(finding(nil) == nil && finding(["LoadState": "not-found"]) == nil)
    #expect(finding(["LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "disabled"]) == nil)
    #expect(finding(active.merging(["StatusText": "connected to mqtt://pi"]) { $1 }) == "ok: connected to mqtt://pi")
    #expect(finding(active.merging(["StatusText": "serving on 127.0.0.1:8270"]) { $1 }) == "ok: serving on 127.0.0.1:8270")
    let rejected = "the broker rejects vehicled/ev/speed: not authorized; allow it for the bridge's user"
    #expect(finding(active.merging(["StatusText": rejected]) { $1 }) == "warning: \(rejected)")
    #expect(
      finding(["LoadState": "loaded", "ActiveState": "failed", "Result": "exit-code"]) == "failed: the service failed: result exit-code")
    #expect(
      finding(["LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "enabled"]) == "warning: enabled, but not running")
  }

  @Test func `users are not told to join root's group, or a group that they are in`() {
    func remedy(_ group: String?, _ membership: SocketAccess.Membership, of service: Service = .daemon) -> String {
      SocketAccess(service: service, group: group, user: "ada", membership: membership).remedy
    }
    #expect(remedy("vehicled", .none) == "sudo usermod -aG vehicled ada, then log in again")
    #expect(remedy("vehicled", .laterThanSession).contains("log out"))
    #expect(remedy("vehicled", .ofSession).contains("namei"))
    #expect(remedy(nil, .none) == "start vehicled as a service, whose socket group vehicled can access, or list users in [control]")
    #expect(
      remedy(nil, .none, of: .history)
        == "start vehicled-history as a service, whose socket group vehicled-observe can access, or list users in [history]")
  }

  @Test func `a clock that was never set is a failure`() {
    #expect(
      LocalChecks.clock(year: 1970, isSynchronised: nil).state == "failed"
        && LocalChecks.clock(year: 2026, isSynchronised: false).state == "warning")
    #expect(LocalChecks.clock(year: 2027, isSynchronised: true).state == "ok")
    #expect(LocalChecks.clock(year: 2027, isSynchronised: nil).state == "ok")
  }

  @Test(arguments: [
    ("vin is KMHK381GFLU000001 here", "vin is KMH… here"), ("12345678901234567", "12345678901234567"),
    ("7E8101462010101FF", "7E8101462010101FF"), ("ble:AA:BB:CC:DD:EE:FF up", "ble:AA:BB:CC:… up"),
    ("/org/bluez/hci0/dev_AA_BB_CC_DD_EE_FF", "/org/bluez/hci0/dev_AA_BB_CC…"),
    ("http://me:pw@host/x", "http://…@host/x"), ("tcp:192.168.0.10:35000 127.0.0.1", "tcp:192.168.0.10:35000 127.0.0.1"),
    ("from 203.0.113.7", "from 203.…"), ("nothing special, 12:30:45", "nothing special, 12:30:45"),
    ("cannot reach ada.example:35000: refused", "cannot reach …:35000: refused"), ("[2001:db8::7]:35000 [::1]:80", "[…]:35000 [::1]:80"),
    ("/etc/vehicled/vehicled.toml:12:9: rate", "/etc/vehicled/vehicled.toml:12:9: rate"),
  ])
  func `VINs, addresses and passwords are redacted`(_ text: String, _ shown: String) {
    #expect(Redaction.text(text) == shown)
  }

  @Test(arguments: [
    ("username = \"Ada\"", "username = \"…\"", "Ada"), ("  latitude = 48.1374 # home", "latitude = …", "48.1374"),
    ("home3 = { kind = \"weather\", latitude = 48.85837 }", "home3 = …", "48.85837"), ("observe-users = [", "observe-users = …", nil),
    ("  \"grace\",", "…", "grace"), ("\"place\" = \"Thule\"", "…", "Thule"), ("place = \"\"\"", "place = …", nil),
    ("place = 'Thule'", "place = \"…\"", "Thule"), ("gadgetbridge = \"/home/ada/x.db\"", "gadgetbridge = \"…\"", "/home/ada/x.db"),
    ("proxy = \"http://me:pw1@proxy.example:3128\"", "proxy = \"…\"", "proxy.example"), ("rate = 20 # fast", "rate = 20", nil),
    ("link = \"ble:Veepeak\"", "link = \"ble:Veepeak\"", nil),
    ("link = \"ble:Ada's HRM?response=no\"", "link = \"ble:…?response=no\"", "Ada's HRM"),
    ("link = \"ble:AA%3ABB%3ACC%3ADD%3AEE%3AFF\"", "link = \"ble:AA:BB:CC:…\"", nil),
    ("link = \"tcp:ada.example:35000\"", "link = \"tcp:…:35000\"", "ada.example"),
    ("link = \"tcp:carpi:35000\"", "link = \"tcp:…:35000\"", "carpi"),
    ("link = \"tcp:[2001:db8::7]:35000\"", "link = \"tcp:…:35000\"", "2001:db8::7"),
    ("link = \"tcp:192.168.0.10:35000\"", "link = \"tcp:192.168.0.10:35000\"", nil),
    ("gps = \"/dev/ttyUSB0\"", "gps = \"/dev/ttyUSB0\"", nil), ("key-file = \"/etc/k\"", "key-file = \"/etc/k\"", nil),
    ("[device.ev] # mine", "[device.ev] ", nil),
    ("devices = [\"ev\", \"ice\"]", "devices = [\"ev\", \"ice\"]", nil), ("allow-raw = true", "allow-raw = true", nil),
  ])
  func `names and places in the configuration are redacted`(_ line: String, _ shown: String, _ name: String?) {
    var names = Redaction.Names()
    #expect((Redaction.configuration(["", line, "# a comment"], &names)) == [shown])
    if let name { #expect(names.removed(from: "lost \(name): try again") == "lost …: try again", "\(names.words)") }
  }

  @Test func `a redacted word is redacted everywhere, as a whole word`() {
    var names = Redaction.Names()
    names.add("Ada")
    names.add("ev")
    #expect(names.removed(from: "Ada's Adapter, ev and Ada") == "…'s Adapter, ev and …")
  }

  @Test func `replies that identify the vehicle are redacted in recordings`() {
    let hex = { (text: String) in text.utf8.map { String($0, radix: 16, uppercase: true) }.joined() }
    let line = { (direction: String, text: String) in "{\"t\":1,\"dir\":\"\(direction)\",\"hex\":\"\(hex(text))\"}" }
    let lines = [
      line("tx", "010C\r"), line("rx", "7E804410C1AF8\r"), line("tx", "0902\r"), line("rx", "7E8101449020157"), line("rx", "50305A5A"),
      line("tx", "STPX H:7E0,D:0904\r"), line("rx", "7E8"), line("tx", "22F190\r"), line("rx", "7E8"), line("tx", "010D\r"),
      line("rx", "7E8"), line("tx", "1A90\r"), line("rx", "7E8"),
    ]
    let firmware = "{\"t\":1,\"dir\":\"rx\",\"hex\":\"021D000602" + String(repeating: "4A", count: 24) + "\"}"
    #expect(Redaction.recording([firmware]) == ["{\"t\":1,\"dir\":\"rx\",\"hex\":\"…\"}"])
    let hidden = "{\"t\":1,\"dir\":\"rx\",\"hex\":\"…\"}"
    #expect(
      Redaction.recording(lines) == [
        lines[0], lines[1], lines[2], hidden, hidden, lines[5], hidden, lines[7], hidden, lines[9], lines[10], lines[11], hidden,
      ])
  }

  @Test func `replies that identify the vehicle are redacted in recordings of frames`() {
    let header = { (frames: String) in
      #"{"format":1,"kind":"obd","device":"ev","date":"2026-11-29T12:00:00Z","start":0,"frames":"\#(frames)"}"#
    }
    let omitted = Redaction.recording([header("slcan"), #"{"t":1,"link":"main","dir":"rx","hex":"5A5A5A"}"#])
    #expect(omitted.count == 1 && omitted[0].hasPrefix("(omitted: "))
    let line = { (direction: String, bytes: [UInt8]) in
      let hex = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
      return #"{"t":1,"link":"main","dir":"\#(direction)","hex":"\#(hex)"}"#
    }
    let hidden = #"{"t":1,"link":"main","dir":"rx","hex":"…"}"#
    // A frame of a CAN socket: the identifier in the machine's order, the length, and the data.
    let frame = { (direction: String, id: UInt16, data: [UInt8]) in
      line(direction, [UInt8(id & 0xFF), UInt8(id >> 8), 0, 0, 8, 0, 0, 0] + data + [UInt8](repeating: 0, count: 8 - data.count))
    }
    // Requests with the length first, and with an address before it, as a BMW has.
    for (vin, flow) in [
      ([0x02, 0x09, 0x02], [0x30]), ([0x03, 0x22, 0xF1, 0x90], [0x30]), ([0x12, 0x02, 0x1A, 0x90], [0x12, 0x30]),
      ([0x12, 0x03, 0x22, 0xF1, 0x90], [0x12, 0x30]),
    ] as [([UInt8], [UInt8])] {
      let lines = [
        header("socketcan"), frame("tx", 0x7E0, flow), frame("rx", 0x7E8, [0x22, 0x5A, 0x5A]), frame("tx", 0x7DF, [0x02, 0x01, 0x0C]),
        frame("rx", 0x7E8, [0x04, 0x41, 0x0C, 0x1A, 0xF8]), frame("tx", 0x7DF, vin),
        frame("rx", 0x7E8, [0x10, 0x14, 0x49, 0x02, 0x01, 0x57, 0x42, 0x30]), frame("tx", 0x7E0, flow),
        frame("rx", 0x7E8, [0x21, 0x50, 0x30, 0x5A, 0x5A, 0x5A, 0x39, 0x39]), frame("tx", 0x7DF, [0x02, 0x01, 0x0D]),
        frame("rx", 0x7E8, [0x03, 0x41, 0x0D, 0x32]),
      ]
      #expect(Redaction.recording(lines) == lines.enumerated().map { [2, 6, 8].contains($0) ? hidden : $1 }, "\(vin)")
    }
  }

  @Test(arguments: [
    ("7E8 10 14 49 02 01 57 42 30 |", true), ("7E8#1014490201574230", true), ("62F190574230", true), ("7E8 21 5A 5A 5A 39 39 30 30", true),
    ("1:5A5A5A39393030", true), ("7F 09 12|7E8 7F", false), ("BUFFER FULL", false),
  ])
  func `an unusable reply is redacted if it can contain the VIN`(_ text: String, _ isHidden: Bool) {
    #expect(Redaction.reply(text) == (isHidden ? "…" : text))
  }

  @Test func `external programs have a timeout`() {
    #expect(ExternalProgram.output(["echo", "here"]) == "here\n")
    #expect(ExternalProgram.output(["false"]) == nil && ExternalProgram.output(["there-is-no-such-program"]) == nil)
    #expect(ExternalProgram.output(["sleep", "60"], within: 0.2) == nil)
    #expect(ExternalProgram.output(["seq", "1000000"], keeping: 1000)?.hasSuffix("999999\n1000000\n") == true)
  }
}
