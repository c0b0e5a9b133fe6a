// setup without a daemon: recognition, the lines of TOML, the questions, and links that are configured already.

import Foundation
import Glibc
import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct SetupTests {
  private func section(_ candidate: Candidate, _ kind: String) throws -> [String] {
    DeviceSection(candidate, try #require(SetupKind[kind]), avoiding: []).lines
  }

  @Test func `the table of kinds agrees with the kinds of the daemon`() throws {
    let kinds: [Kind] = [.obd, .longboard, .rcCar, .mirror, .heartRate, .footPod, .position, .can]
    #expect(SetupKind.all.map(\.name) == kinds.map(\.name))
    for (mine, kind) in zip(SetupKind.all, kinds) {
      #expect(Set(mine.schemes) == Set(kind.links.flatMap(\.schemes)), "\(kind.name)")
      for question in mine.questions {
        let option = kind.options.first { $0.name == question.key }
        #expect(option != nil || kind.secrets.contains { $0.name == question.key }, "\(question.key)")
        let choices = question.choices.filter { $0 != question.omission }
        #expect(choices.sorted() == (option?.rule.choices ?? []).sorted(), "\(question.key)")
        #expect(question.isNumber == (option?.rule.type == .int), "\(question.key)")
      }
    }
  }

  @Test func `recognised devices have a section`() throws {
    let veepeak = Candidate(transport: "ble", address: "AA:BB:CC:00:11:22", name: "Veepeak", rssi: -60, kind: "obd")
    #expect(try section(veepeak, "obd") == ["[device.car]", "kind = \"obd\"", "link = \"ble:Veepeak\""])
    let usb = Candidate(transport: "serial", address: "/dev/ttyUSB0", name: "usb-ScanTool.net_LLC_OBDLink_SX-if00-port0")
    #expect(usb.kind == "obd")
    #expect(try section(usb, "obd")[2] == "link = \"serial:/dev/serial/by-id/usb-ScanTool.net_LLC_OBDLink_SX-if00-port0\"")
    let vesc = Candidate(
      transport: "serial", address: "/dev/ttyACM0", name: "usb-STMicroelectronics_ChibiOS_RT_Virtual_COM_Port_304-if00")
    #expect(vesc.kind == "longboard" && vesc.isVESC)
    let board = try section(vesc, "longboard")
    #expect(board[0] == "[device.board]" && board[2].hasSuffix("304-if00?baud=115200\"") && board[3] == "protocol = \"vesc\"")
    let adapter = try Candidate(url: "slcan:tcp:192.168.80.1:3333")
    #expect(
      try section(adapter, "obd") == ["[device.car]", "kind = \"obd\"", "link = \"slcan:tcp:192.168.80.1:3333\"", "bit-rate = 500000"])
    let canable = Candidate(transport: "serial", address: "/dev/ttyACM0", name: "usb-Protofusion_Labs_CANable_1205_http:__a-if00")
    #expect(canable.transport == "slcan" && canable.kind == nil)
    let link = "slcan:serial:/dev/serial/by-id/usb-Protofusion_Labs_CANable_1205_http:__a-if00"
    #expect(try section(canable, "can")[2] == "link = \"\(link)\"" && LinkText.leads(link, to: canable))
    #expect(!LinkText.leads("slcan:serial:/dev/ttyACM7", to: canable) && !LinkText.leads("slcan:tcp:h:1", to: canable))
    let torq = Candidate(transport: "ble", address: "AA:BB:CC:00:11:22", name: "HMSoft", kind: "longboard")
    #expect(try section(torq, "longboard").suffix(2) == ["link = \"ble:HMSoft\"", "protocol = \"elcomm\""])
    let mirror = Candidate(transport: "ble", address: "AA:BB:CC:00:11:22", name: "ESP32-BLE-Server", kind: "mirror")
    #expect(try section(mirror, "mirror").contains("key-file = \"/etc/vehicled/mirror.key\""))
    #expect(Candidate(transport: "serial", address: "/dev/ttyUSB0", name: "usb-FTDI_FT232R_USB_UART-if00").kind == nil)
  }

  @Test func `a CAN adapter can be listened to`() throws {
    let adapter = try Candidate(url: "slcan:tcp:192.168.80.1:3333")
    let lines = ["[device.bus]", "kind = \"can\"", "link = \"slcan:tcp:192.168.80.1:3333\"", "bit-rate = 500000"]
    #expect(try section(adapter, "can") == lines)
    let interface = Candidate(transport: "can", address: "can0")
    #expect(try section(interface, "can") == ["[device.bus]", "kind = \"can\"", "link = \"can:can0\""])
    let kind = try #require(SetupKind["can"])
    let tesla = DeviceSection(adapter, kind, name: "tesla", ["vehicle": "tesla-model-3"])
    #expect(tesla.lines.last == "vehicle = \"tesla-model-3\"")
    let rate = kind.questions[1]
    #expect(SetupKind["obd"]?.questions.map(\.key) == ["bit-rate"])
    #expect(!rate.isAsked(for: adapter, ["vehicle": "tesla-model-3"]) && !rate.isAsked(for: interface, ["vehicle": "none"]))
    #expect(rate.problem(with: "500k") == "\"500k\" is not a whole number above 0" && rate.problem(with: "250000") == nil)
  }

  @Test func `CAN interfaces of the kernel are listed`() throws {
    let folder = NSTemporaryDirectory() + "vehiclectl-net-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    for (name, type) in [("can1", "280\n"), ("eth0", "1\n"), ("can0", "280\n"), ("lo", "772\n")] {
      try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
      try type.write(toFile: "\(folder)/\(name)/type", atomically: true, encoding: .utf8)
    }
    let found = CANInterfaces.candidates(in: folder)
    #expect(found.map(\.address) == ["can0", "can1"] && found.allSatisfy { $0.transport == "can" && $0.kind == nil })
    #expect(found.arranged.count == 2 && CANInterfaces.candidates(in: folder + "/none").isEmpty)
  }

  @Test(arguments: [
    ("Veepeak", "ble:Veepeak"), ("VESC BLE UART", "ble:VESC%20BLE%20UART"), ("a?b%", "ble:a%3Fb%25"), ("é", "ble:é"),
    ("auto", "ble:AA:00"), ("*x", "ble:AA:00"), ("x*", "ble:AA:00"), ("11:22:33:44:55:66", "ble:AA:00"), ("a\u{1b}b", "ble:AA:00"),
    ("", "ble:AA:00"),
  ]) func `a peripheral is named by its name if that identifies it`(_ name: String, _ link: String) throws {
    let candidate = Candidate(transport: "ble", address: "AA:00", name: name, kind: "obd")
    #expect(candidate.link(kind: try #require(SetupKind["obd"])) == link)
    #expect(LinkText.body(of: link) == (link == "ble:AA:00" ? "AA:00" : name))
  }

  @Test(arguments: [
    ("ble:Polar%20H10?adapter=hci1", "ble:Polar H10?adapter=hci1"), ("ble:a%3Fb%25", "ble:a?b%"), ("serial:/dev/a%2", "serial:/dev/a%2"),
  ]) func `people see the URL of a link without encoding`(_ url: String, _ shown: String) {
    #expect(LinkText.readable(url) == shown)
  }

  @Test func `values are quoted for TOML`() {
    #expect(DeviceSection.quoted("a\"b\\c\u{7}é") == "\"a\\\"b\\\\c\\u0007é\"")
  }

  @Test func `the list has recognised devices first, and marks shared names`() throws {
    var found: [Candidate] = []
    for (address, name, rssi, kind) in [
      ("1", "TV", -40, nil), ("2", nil, -30, nil), ("3", "OBDII", -80, "obd"), ("4", "OBDII", -60, "obd"), ("1", "TV set", -41, nil),
    ] as [(String, String?, Int, String?)] {
      found.note(Candidate(transport: "ble", address: address, name: name, rssi: rssi, kind: kind))
    }
    found.note(Candidate(transport: "serial", address: "/dev/ttyUSB0"))
    let list = found.arranged
    #expect(list.map(\.address) == ["4", "3", "/dev/ttyUSB0", "1"] && list[3].name == "TV set")
    #expect(list[0].link(kind: try #require(SetupKind["obd"])) == "ble:4", "two have this name")
  }

  @Test func `gpsd is recognised by its port, and listed after vehicles`() throws {
    let gpsd = try Candidate(url: "tcp:127.0.0.1:2947")
    #expect(try section(gpsd, "position") == ["[device.gps]", "kind = \"position\"", "link = \"tcp:127.0.0.1:2947\""])
    #expect(gpsd.kind == "position" && Candidate(transport: "tcp", address: "127.0.0.1:29470").kind == nil)
    let found = [
      gpsd, Candidate(transport: "serial", address: "/dev/ttyUSB0"), Candidate(transport: "ble", address: "1", rssi: -60, kind: "obd"),
    ]
    #expect(found.arranged.map(\.kind) == ["obd", "position", nil])
  }

  @Test func `the printed configuration has one section for each new device`() {
    let link = Contract.Link(name: "main", url: "ble:Vee*", state: "up", since: 0)
    let car = Contract.Device(name: "car", kind: "obd", state: "polling", links: [link])
    let lines = DeviceSection.lines(
      for: [
        Candidate(transport: "ble", address: "1", name: "Veepeak", rssi: -60, kind: "obd"),
        Candidate(transport: "ble", address: "2", name: "OBDII", kind: "obd"), Candidate(transport: "serial", address: "/dev/ttyUSB9"),
      ], [car])
    #expect(
      lines == [
        "# ble  1  -60 dBm  Veepeak: configured as car", "# ble  2  OBDII", "[device.car-2]", "kind = \"obd\"", "link = \"ble:OBDII\"",
        "# serial  /dev/ttyUSB9: unknown kind",
      ])
  }

  @Test(arguments: [
    ("ble:Veepeak", true), ("ble:Vee*?adapter=hci1", true), ("ble:*eep*", true), ("ble:aa:bb:cc:00:11:22", true), ("ble:auto", false),
    ("ble:Vee", false), ("tcp:Veepeak", false), ("ble:%", false),
  ]) func `links to the same peripheral are recognised`(_ url: String, _ leads: Bool) {
    let candidate = Candidate(transport: "ble", address: "AA:BB:CC:00:11:22", name: "Veepeak")
    #expect(LinkText.leads(.init(name: "main", url: url, state: "down", since: 0), to: candidate) == leads)
  }

  @Test func `other links to the same place are recognised`() throws {
    let port = Candidate(transport: "serial", address: "/dev/null")
    #expect(LinkText.leads(.init(name: "main", url: "serial:/dev/../dev/null?baud=9600", state: "up", since: 0), to: port))
    let tcp = Candidate(transport: "tcp", address: "192.168.0.10:35000")
    #expect(LinkText.leads(.init(name: "main", url: "tcp:192.168.0.10:35000", state: "up", since: 0), to: tcp))
    let gpsd = Candidate(transport: "tcp", address: "127.0.0.1:2947")
    #expect(LinkText.leads(.init(name: "main", url: "tcp:localhost:2947", state: "up", since: 0), to: gpsd))
    #expect(!LinkText.leads(.init(name: "main", url: "tcp:localhost:29470", state: "up", since: 0), to: gpsd))
    let found = Contract.Link(name: "main", url: "ble:auto", state: "up", since: 0, details: ["peer": "\"X\" (AA:BB:CC:00:11:22)"])
    #expect(LinkText.leads(found, to: Candidate(transport: "ble", address: "aa:bb:cc:00:11:22")))
    for wrong in ["", "Veepeak", "http://x", "/dev/ttyUSB0", "tcp:"] { #expect(throws: Failure.self) { _ = try Candidate(url: wrong) } }
    #expect(try Candidate(url: "serial:/dev/ttyUSB0?baud=9600").link(kind: #require(SetupKind["obd"])) == "serial:/dev/ttyUSB0?baud=9600")
  }

  @Test func `choices from the list`() {
    let choice = SetupDialogue.choice
    #expect(choice("2", 3, 1) == .number(2) && choice("", 3, 1) == .number(1) && choice("", 3, nil) == .again)
    #expect(choice("r", 3, 1) == .again && choice("Q", 0, nil) == .quit)
    for wrong in ["0", "4", "x", "-1", "1 2"] {
      guard case .invalid(let message) = choice(wrong, 3, 1) else { return #expect(Bool(false), "\(wrong)") }
      #expect(message.contains("1 to 3"))
    }
    guard case .invalid = choice("1", 0, nil) else { return #expect(Bool(false)) }
  }

  /// A dialogue with these answers; records remarks.
  private func dialogue(_ answers: [String?], terminal: Bool = true) -> SetupDialogue {
    var rest = answers[...]
    return SetupDialogue(acceptsDefaults: false, isAtTerminal: terminal, ask: { _ in rest.popFirst() ?? nil }, remark: { _ in })
  }

  @Test func `Enter is the default, and wrong answers are asked for again on a terminal only`() throws {
    #expect(try dialogue([""]).word("kind", of: ["obd", "car"], default: "obd") == "obd")
    #expect(try dialogue(["x", "ca"]).word("kind", of: ["obd", "car"], default: "obd") == "car")
    #expect(throws: Failure.self) { try dialogue(["x", "car"], terminal: false).word("kind", of: ["obd", "car"], default: "obd") }
    #expect(try dialogue(["Ünfit", " ev "]).text("name", default: "car") { DeviceSection.problem(withName: $0, []) } == "ev")
    #expect(try dialogue([""]).agrees("add") && !dialogue(["n"]).agrees("add") && dialogue(["?", "yes"]).agrees("add"))
    let end = #expect(throws: Failure.self) { try dialogue([]).agrees("add these lines") }
    #expect(end?.exitCode == 2 && end?.message.contains("\"add these lines\"") == true)
  }

  @Test func `names of devices`() {
    #expect(DeviceSection.problem(withName: "ev-6", ["car"]) == nil)
    for wrong in ["", "6", "Car", "a b", "car", String(repeating: "a", count: 33)] {
      #expect(DeviceSection.problem(withName: wrong, ["car"]) != nil, "\(wrong)")
    }
    #expect(DeviceSection.unused("car", ["car", "car-2"]) == "car-3" && DeviceSection.unused("car", []) == "car")
    #expect(DeviceSection.name(in: ["# x", "", "[device.ev]", "kind = \"obd\""]) == "ev")
    for wrong in [[], ["kind = \"obd\"", "[device.ev]"], ["[control]"], ["[device.E]"]] { #expect(DeviceSection.name(in: wrong) == nil) }
  }

  @Test func `addresses are tried in the networks of this machine only`() throws {
    let home = try #require(NetworkProbe.network(of: 0xC0A8_0017, mask: 0xFFFF_FF00))
    #expect(home.contains("192.168.0.10") && !home.contains("192.168.1.10"))
    #expect(!NetworkProbe.accepts("127.0.0.1", 1) && !NetworkProbe.accepts("nowhere", 35000))
  }

  // MARK: The file

  private func change(
    from text: String?, _ reload: (String) throws -> [String]
  ) throws -> (text: String?, failure: Failure?, left: [String]) {
    var template = Array("/tmp/vehiclectl-setup-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } }
    let directory = try #require(made)
    let path = "\(directory)/vehicled.toml"
    defer {
      unlink(path)
      rmdir(directory)
    }
    if let text { try AtomicFile.write(Array(text.utf8), to: path, force: false, mode: 0o640) }
    let lines = ["[device.car]", "kind = \"obd\"", "link = \"tcp:127.0.0.1:1\""]
    var failure: Failure?
    do { try ConfigurationChange(path: path, lines: lines).apply(device: "car") { try reload(read(path) ?? "") } } catch {
      failure = try #require(error as? Failure)
    }
    var state = stat()
    if text != nil { #expect(stat(path, &state) == 0 && state.st_mode & 0o777 == 0o640) }
    return (read(path), failure, EventDevice.names(in: directory))
  }

  private func read(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  private static let added = "[device.car]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n"

  @Test(arguments: [
    ("", ""), ("# comment", "# comment\n\n"), ("log-level = \"info\"\n", "log-level = \"info\"\n\n"), ("# a\r\n", "# a\r\n\n"),
  ]) func `lines are appended, and the rest of the file stays`(_ old: String, _ start: String) throws {
    let (text, failure, _) = try change(from: old) { _ in ["car"] }
    #expect(text == start + Self.added && failure == nil)
  }

  @Test func `a missing file is created`() throws {
    #expect(try change(from: nil) { _ in ["car"] }.text == Self.added)
  }

  @Test func `a change that the daemon rejects is taken back`() throws {
    let rejected = Failure.rejected(.configurationInvalid(message: "no"))
    let (text, failure, _) = try change(from: "# mine") { text in
      #expect(text.hasPrefix("# mine\n\n[device.car]"), "the reload follows the change")
      throw rejected
    }
    #expect(text == "# mine" && failure == rejected)
    let other = try change(from: "# mine") { _ in [] }
    #expect(other.text == "# mine" && other.failure?.message.contains("does not read") == true)
    #expect(try change(from: nil) { _ in throw rejected }.text == nil)
  }

  @Test func `the change stays if the daemon is lost while it reloads`() throws {
    let (text, failure, _) = try change(from: "") { _ in throw Failure.daemonGone("x") }
    #expect(text == Self.added && failure == .daemonGone("x"))
  }
}
