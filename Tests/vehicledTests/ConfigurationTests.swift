// The configuration: valid files, and the location and message of each mistake.

import ConfigurationFiles
import Foundation
import Protocols
import Testing

@testable import vehicled

/// A kind for these tests: two links, an option of each type, and a machine that rejects a combination.
struct Still: Machine {
  static let kind = Kind(
    name: "still", summary: "does nothing",
    links: [LinkRole(schemes: ["serial", "tcp"]), LinkRole("video", key: "video-link", schemes: ["tcp"], isRequired: false)],
    options: [
      Option("rate", ValueRule(.float, unit: "polls/s", range: 0...50), default: .float(20), help: "polls a second"),
      Option("dialect", ValueRule(.string, choices: ["real", "documented"]), default: .string("real"), help: "which form"),
      Option("cells", ValueRule(.int, range: 1...200), help: "number of cells"),
      Option("allow-raw", ValueRule(.bool), default: .bool(false), help: "raw queries"),
      Option("signals", ValueRule(.list), default: .list([]), help: "more signals"),
    ],
    sections: [
      Section(
        "mode",
        options: [
          Option("speed", ValueRule(.float, range: 1...200), help: "top speed"),
          Option("current", ValueRule(.float, range: 0...100), default: .float(100), help: "current"),
        ], help: "speed modes")
    ],
    make: { setup throws(OptionError) in
      if setup.options["dialect"] == .string("documented"), setup.options["allow-raw"] == .bool(true) {
        throw OptionError("allow-raw", "the documented dialect has no raw queries; leave one of them out")
      }
      return Still()
    })

  var schema: Schema { Schema() }
  var nextWake: Instant? { nil }
  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {}
}

/// A temporary directory, removed after the test.
final class Folder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "vehicled-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  @discardableResult func write(_ text: String, to name: String = "v.toml") throws -> String {
    try write(Array(text.utf8), to: name)
  }

  @discardableResult func write(_ bytes: [UInt8], to name: String = "v.toml") throws -> String {
    let file = "\(path)/\(name)"
    try FileManager.default.createDirectory(atPath: (file as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(fileURLWithPath: file))
    return file
  }
}

/// The problems of this file, without its path.
func problems(_ text: String) throws -> [String] {
  let folder = try Folder()
  let path = try folder.write(text)
  do throws(ConfigurationError) {
    _ = try Configuration.load(path, kinds: [Still.kind])
    return []
  } catch {
    return error.problems.map { $0.description.replacingOccurrences(of: path + ":", with: "") }
  }
}

@Suite struct ConfigurationTests {
  @Test func `four lines make a device with the defaults of its kind`() throws {
    let folder = try Folder()
    let path = try folder.write("[device.ev]\nkind = \"still\"\nlink = \"serial:/dev/ttyUSB0\"\nrate = 10\n")
    let device = Configuration.Device(
      name: "ev", kind: "still", links: [.main: .serial(path: "/dev/ttyUSB0", baud: nil)],
      options: ["rate": .float(10), "dialect": .string("real"), "allow-raw": .bool(false), "signals": .list([])])
    #expect(try Configuration.load(path, kinds: [Still.kind]) == Configuration(devices: [device]))
  }

  @Test func `a device's access lists do not change the device`() throws {
    let folder = try Folder()
    let device = "[device.ant]\nkind = \"still\"\nlink = \"replay:/tmp/ride\"\n"
    let plain = try Configuration.load(folder.write(device), kinds: [Still.kind])
    #expect(plain.control == Configuration.Control())
    let lists = "observe = [\"family\"]\ncontrol-users = [\"ada\", \"1001\"]\ndrive = []\n"
    let limited = try Configuration.load(folder.write(device + lists), kinds: [Still.kind])
    #expect(limited.devices == plain.devices && limited.control.lists == plain.control.lists)
    #expect(
      limited.control.devices == ["ant": .init(observe: ["family"], controlUsers: ["ada", "1001"], limitsDriving: true)])
    let drivers = try Configuration.load(folder.write("[control]\ndrive-users = [\"eve\"]\n" + device), kinds: [Still.kind])
    var expected = Configuration.AccessLists.default
    (expected.driveUsers, expected.limitsDriving) = (["eve"], true)
    #expect(drivers.control == .init(lists: expected))
  }

  @Test(arguments: [
    ("", ["vehicled", "vehicled-observe"]), ("control = [\"a\"]", ["vehicled", "vehicled-observe"]), ("observe = [\"a\"]", ["vehicled"]),
    ("observe = [\"vehicled\"]", []), ("drive = [\"vehicled\"]", ["vehicled-observe"]), ("observe = []\ncontrol = []", []),
  ]) func `only groups that no key names need not exist`(_ keys: String, _ groups: [String]) throws {
    let folder = try Folder()
    let configuration = try Configuration.load(
      folder.write("[control]\n\(keys)\n[device.a]\nkind = \"still\"\nlink = \"replay:/tmp/r\"\n"), kinds: [Still.kind])
    #expect(configuration.control.lists.optionalGroups == Set(groups))
  }

  @Test func `every key is accepted, and devices keep the order of the file`() throws {
    let folder = try Folder()
    let path = try folder.write(
      """
      log-level = "debug"
      control = { socket = "/tmp/s", observe = ["users", "vehicled"], control = [] }
      [device.zebra]
      kind = "still"
      link = 'tcp:[::1]:35000'
      video-link = "replay:/tmp/video"
      record = true
      cells = 90.0
      signals = ["a", "b"]
      [device.ant]
      kind = "still"
      link = "replay:/tmp/ride"
      """)
    let configuration = try Configuration.load(path, kinds: [Still.kind])
    #expect(configuration.logLevel == .debug)
    #expect(configuration.control == .init(socket: "/tmp/s", lists: .init(observe: ["users", "vehicled"])))
    #expect(configuration.devices.map(\.name) == ["zebra", "ant"])
    let zebra = try #require(configuration.devices.first)
    #expect(zebra.record)
    #expect(zebra.links == [.main: .tcp(host: "::1", port: 35000), "video": .replay(path: "/tmp/video", speed: 1)])
    #expect(zebra.options["cells"] == .int(90))
    #expect(zebra.options["signals"] == .list(["a", "b"]))
  }

  @Test func `later files are merged key by key, in the order of their names`() throws {
    let folder = try Folder()
    let path = try folder.write("[device.ev]\nkind = \"still\"\nlink = \"serial:/dev/a\"\nrate = 1\n")
    try folder.write("[device.ev]\nrate = 3\n", to: "v.toml.d/20-b.toml")
    try folder.write("[device.ev]\nrate = 2\ncells = 4\n[device.b]\nkind = 'still'\nlink = 'tcp:h:1'\n", to: "v.toml.d/10-a.toml")
    try folder.write("rubbish", to: "v.toml.d/30-c.toml~")
    try folder.write("rubbish", to: "v.toml.d/.hidden.toml")
    let configuration = try Configuration.load(path, kinds: [Still.kind])
    #expect(configuration.devices.map(\.name) == ["ev", "b"])
    #expect(configuration.devices.first?.options["rate"] == .float(3))
    #expect(configuration.devices.first?.options["cells"] == .int(4))
    #expect(configuration.devices.first?.links == [.main: .serial(path: "/dev/a", baud: nil)])
  }

  @Test func `subsections keep the user's names and the order of the file`() throws {
    let folder = try Folder()
    let path = try folder.write(
      "[device.ev]\nkind = \"still\"\nlink = \"tcp:h:1\"\n[device.ev.mode.sport]\n[device.ev.mode.eco]\nspeed = 15\ncurrent = 50\n")
    let modes = try #require(try Configuration.load(path, kinds: [Still.kind]).devices.first?.sections["mode"])
    #expect(
      modes == [
        Setup.Subsection("sport", ["current": .float(100)]), Setup.Subsection("eco", ["speed": .float(15), "current": .float(50)]),
      ])
  }

  @Test func `the directory alone is sufficient, and an empty file is valid`() throws {
    let folder = try Folder()
    try folder.write("[device.ev]\nkind = \"still\"\nlink = \"serial:/dev/a\"\n", to: "v.toml.d/a.toml")
    #expect(try Configuration.load(folder.path + "/v.toml", kinds: [Still.kind]).devices.count == 1)
    let empty = try folder.write("", to: "empty.toml")
    #expect(try Configuration.load(empty, kinds: [Still.kind]) == Configuration())
  }

  @Test(arguments: [
    ("[device.ev\n", "1:11: syntax error in table header: expected ']', saw '\\n'; write [device.NAME]"),
    ("a = 1\na = 2", "2:5: cannot redefine existing integer 'a'; remove or rename one of the two"),
    ("log-level = debug", "1:13: syntax error in value: could not determine value type; put strings in quotes, as in"),
    ("log-level\n", "1:10: syntax error in key-value pair: expected '=', saw '\\n'; write KEY = VALUE"),
    ("[=]", "1:2: syntax error in"),
    ("log-levle = \"info\"", "1:1: unknown key \"log-levle\"; did you mean log-level?"),
    ("log-level = \"loud\"", "1:13: log-level: unknown value \"loud\"; use one of trace, debug"),
    ("log-level = 1979-05-27", "1:13: log-level: this is a date; use one of trace"),
    ("[devices.ev]\nkind = \"still\"", "1:2: unknown section \"devices\"; did you mean device?"),
    ("[mqtt]", "1:2: unknown section \"mqtt\"; use one of control, device"),
    ("device = 5", "1:1: device is a section, not a key; write [device.NAME]"),
    ("[device]\nev = 5", "2:1: ev is a section, not a key; write [device.NAME]"),
    ("[control]\nobserv = []", "2:1: unknown key \"observ\"; did you mean observe?"),
    ("[control]\nobserve = \"vehicled\"", "2:11: observe: \"vehicled\" is a string; write observe = [\"vehicled\"]"),
    ("[control]\nobserve = [\"a\", 1]", "2:11: observe: the list contains values that are not strings; use a list of strings"),
    ("[control]\ncontrol-users = [\"\"]", "2:17: control-users: \"\" is not the name of a user"),
    ("[control]\nauthorization = \"pam\"", "2:17: authorization: unknown value \"pam\"; use one of lists, polkit"),
    ("[control]\nobserve = [\"a b\"]", "2:11: observe: \"a b\" is not the name of a group"),
    ("[control]\ndrive = \"kids\"", "2:9: drive: \"kids\" is a string; write drive = [\"kids\"]"),
    ("[device.a]\nkind = \"still\"\nlink = \"serial:/dev/x\"\nobserve = [\"a b\"]", "4:11: observe: \"a b\" is not the name of a group"),
    ("[device.a]\nkind = \"still\"\nlink = \"serial:/dev/x\"\ndrive-users = [\"\"]", "4:15: drive-users: \"\" is not the name of a user"),
    (
      "[device.a]\nkind = \"still\"\nlink = \"serial:/dev/x\"\ncontrol-user = []",
      "4:1: unknown key \"control-user\" for kind still; did you mean control-users?"
    ),
    ("[control]\nsocket = \"run/s\"", "2:10: socket: \"run/s\" is not an absolute path"),
    ("[control.x]", "1:10: unknown section \"x\"; remove it"),
    (
      "[device.a]\nkind = \"still\"\nlink = \"serial:/dev/x\"\n[device.b]\nkind = \"still\"\nlink = \"serial:/dev/x?baud=9600\"",
      "6:8: link: devices a and b have the same link; give each device its own"
    ),
    ("\"a\\nb\\u001b\" = 1", "1:1: unknown key \"a\\nb\\u{1b}\""),
  ])
  func `mistakes outside of devices are reported with line and column`(text: String, expected: String) throws {
    let found = try problems(text)
    #expect(found.count == 1)
    #expect(found.first?.contains(expected) == true, "\(found)")
  }

  @Test(arguments: [
    ("", "1:1: kind is missing; add kind = \"still\""),
    ("kind = 3", "2:8: kind: 3 is an integer; put it in quotes"),
    ("kind = \"stil\"\nlink = \"tcp:h:1\"", "2:8: unknown kind \"stil\"; did you mean still?"),
    ("kind = \"submarine\"", "2:8: unknown kind \"submarine\"; use one of still"),
    ("kind = \"still\"", "1:1: link is missing; add link = \"serial:/dev/ttyUSB0\""),
    ("link = \"tcp:h:1\"\nkind = \"still\"\nrat = 4", "4:1: unknown key \"rat\" for kind still; did you mean rate?"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\npressure = 4", "4:1: unknown key \"pressure\" for kind still; use one of kind, record, link"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\nrate = 51", "4:8: rate: 51 is out of range; use a number from 0 to 50 polls/s"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\nrate = nan", "4:8: rate: "),
    ("link = \"tcp:h:1\"\nkind = \"still\"\ncells = 1.5", "4:9: cells: 1.5 has a fraction; use a whole number from 1 to 200"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\nrecord = \"yes\"", "4:10: record: \"yes\" is a string; use true or false"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\n[device.ev.rate]", "4:1: rate: this is a section; use a number"),
    ("link = \"tcp:h\"\nkind = \"still\"", "2:13: link: HOST or PORT is missing"),
    ("link = \"serial:/dev/é?bawd=1\"\nkind = \"still\"", "2:23: link: unknown key \"bawd\" in the link"),
    ("link = \"serial:/dev/\\u0041?bawd=1\"\nkind = \"still\"", "2:8: link: unknown key \"bawd\""),
    ("link = \"tcp:h:1\"\nkind = \"still\"\nmode = 3", "4:1: mode is a section, not a key; write [device.ev.mode.NAME]"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\nmode.eco = 3", "4:6: eco is a section, not a key; write [device.ev.mode.NAME]"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\n[device.ev.mode.Eco]", "4:17: invalid mode name \"Eco\"; use at most 32"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\n[device.ev.mode.eco]\nsped = 3", "5:1: unknown key \"sped\" for mode eco; did you mean speed?"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\n[device.ev.mode.eco]\nspeed = 300", "5:9: speed: 300 is out of range; use a number from 1"),
    ("link = \"tcp:h:1\"\nkind = \"still\"\n[device.ev.mod.eco]", "4:12: unknown section \"mod\" for kind still; did you mean mode?"),
    (
      "link = \"tcp:h:1\"\nvideo-link = \"serial:/dev/a\"\nkind = \"still\"",
      "3:15: video-link: kind still does not support serial: links; use one of tcp:, replay:"
    ),
    (
      "link = \"tcp:h:1\"\nkind = \"still\"\ndialect = \"documented\"\nallow-raw = true",
      "5:13: allow-raw: the documented dialect has no raw queries"
    ),
  ])
  func `mistakes in a device are reported with line and column`(lines: String, expected: String) throws {
    let found = try problems("[device.ev]\n" + lines)
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix(expected) == true, "\(found)")
  }

  @Test(arguments: ["Ev", "1ev", "-ev", "e_v", "e v", "é", "", "abcdefghijklmnopqrstuvwxyz0123456"])
  func `an invalid device name is rejected`(name: String) throws {
    let found = try problems("[device.\"\(name)\"]\nkind = \"still\"\nlink = \"tcp:h:1\"")
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("1:9: invalid device name \"\(name)\"; use at most 32 lower-case letters") == true, "\(found)")
  }

  @Test func `all problems of all files are reported at once, each in its file`() throws {
    let folder = try Folder()
    let path = try folder.write("log-level = 3\n[device.A]\nkind = \"still\"\nlink = \"tcp:h:1\"\n")
    try folder.write("[device.b]\nkind = \"still\"\nlink = \"tcp:h:0\"\nrecord = 1\n", to: "v.toml.d/b.toml")
    try folder.write("x = ", to: "v.toml.d/c.toml")
    let error = #expect(throws: ConfigurationError.self) { try Configuration.load(path, kinds: [Still.kind]) }
    let places = error?.problems.map(\.location.description) ?? []
    #expect(places.contains("\(path):1:13") && places.contains("\(path):2:9"))
    #expect(places.contains("\(path).d/b.toml:3:15") && places.contains("\(path).d/b.toml:4:10"))
    #expect(places.contains { $0.hasPrefix("\(path).d/c.toml:1:") })
    #expect(places.count == 5)
  }

  @Test func `keys are not reported as missing if a file could not be read`() throws {
    let folder = try Folder()
    let path = try folder.write("[device.ev\nkind = \"still\"")
    try folder.write("[device.ev]\nrate = 3\n", to: "v.toml.d/b.toml")
    let error = #expect(throws: ConfigurationError.self) { try Configuration.load(path, kinds: [Still.kind]) }
    #expect(error?.problems.count == 1)
  }
}
