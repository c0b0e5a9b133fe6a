// Messages about common mistakes in a configuration, and warnings of `vehicled --check-config`.

import ConfigurationFiles
import Foundation
import Protocols
import Testing

@testable import vehicled

@Suite struct ConfigurationMessageTests {
  private static let device = "[device.ev]\nkind = \"obd\"\nlink = \"serial:/dev/ttyUSB0\"\n"

  private func problems(_ text: String) throws -> [String] {
    let folder = try Folder()
    let path = try folder.write(text)
    do throws(ConfigurationError) {
      _ = try Configuration.load(path, kinds: registry)
      return []
    } catch {
      return error.problems.map { $0.description.replacingOccurrences(of: path + ":", with: "") }
    }
  }

  @Test(arguments: [
    ("kind = \"obd\nrate = 1\n", "1:12: string is not closed; add \" at the end"),
    ("kind = \"obd\r\nrate = 1\r\n", "1:12: string is not closed; add \" at the end"),
    ("kind = 'obd\nrate = 1\n", "1:12: string is not closed; add ' at the end"),
    ("kind = \"obd", "1:12: string is not closed; add \" at the end"),
    ("kind = \"\"\"obd\nrate = 1\n", "2:10: string is not closed; add \"\"\" at the end"),
    ("kind = '''obd\nrate = 1\n", "2:10: string is not closed; add ''' at the end"),
  ])
  func `an unclosed string is reported`(text: String, expected: String) throws {
    #expect(try problems(text) == [expected])
  }

  @Test(arguments: [
    ("a = [1, 2", "add ] at the end"), ("a = {b = 1", "add } at the end"), ("a = \"C:\\x\"", "write \\\\ for a backslash"),
    ("a = \"x\u{1}y\"", "remove the control character"), ("a = 1 b = 2", "write one KEY = VALUE on each line"),
    ("a = True", "write true or false"), ("a = \n", "put strings in quotes"),
    ("a = 5V", "write a number, or put a string in quotes"), ("a = ", "write KEY = VALUE"),
    ("a.b = 1\na = 2", "cannot redefine existing table 'a'; remove or rename one of the two"),
  ])
  func `a syntax error is reported once with its fix`(text: String, expected: String) throws {
    let found = try problems(text)
    #expect(found.count == 1 && found[0].contains(expected) && !found[0].contains("Error while"), "\(found)")
  }

  @Test(arguments: [
    ("rate = \"20\"", "4:8: rate: \"20\" is a string; remove the quotes"),
    ("rate = \"fast\"", "4:8: rate: \"fast\" is a string; use a number from 0 to "),
    ("rate = 5000", "4:8: rate: 5000 is out of range; use a number from 0 to "),
    ("rate = -0.5", "4:8: rate: -0.5 is out of range; use a number from 0 to "),
    ("rate = inf", "4:8: rate: inf is not a finite number; use a number from 0 to "),
    ("vehicle = \"ev6\"", "4:11: vehicle: unknown value \"ev6\"; use one of "),
    ("vehicle = \"ice\"", "4:11: vehicle: unknown value \"ice\"; it has been renamed to generic"),
    ("vehicle = 6", "4:11: vehicle: 6 is an integer; use one of "),
    ("record = \"true\"", "4:10: record: \"true\" is a string; remove the quotes"),
    ("record = 1", "4:10: record: 1 is an integer; use true or false"),
    (
      "[device.ev.property.odometr]",
      "4:21: no vehicle has a property odometr; did you mean odometer?"
    ),
    ("[device.ev.property.warp]", "4:21: no vehicle has a property warp; vehiclectl describe lists them"),
  ])
  func `an unaccepted value is reported once with the accepted ones`(line: String, expected: String) throws {
    let found = try problems(Self.device + line)
    #expect(found.count == 1 && found[0].hasPrefix(expected), "\(found)")
    #expect(found[0].components(separatedBy: " from ").count <= 2 && found[0].components(separatedBy: "one of").count <= 2)
  }

  @Test func `an out-of-range value is reported once with the accepted ones`() throws {
    let found = try problems("[device.sky]\nkind = \"weather\"\nlatitude = 163\nlongitude = 8.4\n")
    #expect(found == ["3:12: latitude: 163 is out of range; use a number from -90 to 90 °"], "\(found)")
    #expect(try problems("log-level = \"inof\"") == ["1:13: log-level: unknown value \"inof\"; did you mean info?"])
    #expect(
      try problems("[control]\nobserve = \"vehicled\"") == ["2:11: observe: \"vehicled\" is a string; write observe = [\"vehicled\"]"])
  }

  @Test(arguments: [
    ("obd", "\"serial:/dev/ttyUSB0\" or \"ble:Veepeak\""), ("rc-car", "\"tcp:192.168.0.10:35000\""), ("heart-rate", "\"ble:Heart Rate\""),
    ("position", "\"tcp:localhost:2947\""), ("longboard", "\"ble:MLT-BT05\" or \"serial:/dev/ttyUSB0\""),
  ])
  func `the example in the message about a missing link is valid`(kind: String, links: String) throws {
    let found = try problems("[device.x]\nkind = \"\(kind)\"")
    #expect(found.first == "1:1: link is missing; add link = \(links)", "\(found)")
    let link = try #require(links.components(separatedBy: " or ").first)
    #expect(try !problems("[device.x]\nkind = \"\(kind)\"\nlink = \(link)").contains { $0.contains("link") })
  }

  @Test(arguments: [("car", "rc-car"), ("running", "foot-pod")])
  func `a kind that was renamed is an error that names the new one`(old: String, new: String) throws {
    let found = try problems("[device.x]\nkind = \"\(old)\"")
    #expect(found == ["2:8: unknown kind \"\(old)\"; it has been renamed to \(new)"], "\(found)")
  }

  @Test(arguments: [
    ("gps = \"\"", "4:7: gps: not the path of a receiver; write it as gpsd lists it, as in \"/dev/ttyUSB0\""),
    ("gps = 1", "4:7: gps: 1 is an integer; put it in quotes"),
    ("max-age = 1", "4:11: max-age: 1 is out of range; use a whole number from 2 to 60 s"),
    ("max_age = 5", "4:1: unknown key"), ("rate = 1", "4:1: unknown key"),
  ]) func `mistakes in the section of a position device are reported`(_ line: String, _ expected: String) throws {
    let found = try problems("[device.gps]\nkind = \"position\"\nlink = \"tcp:localhost:2947\"\n\(line)\n")
    #expect(found.count == 1 && found[0].hasPrefix(expected), "\(found)")
    #expect(
      try problems("[device.gps]\nkind = \"position\"\nlink = \"serial:/dev/ttyUSB0\"").first?.contains("use one of tcp:, replay:") == true)
  }

  @Test func `unknown groups and users are warnings, except the default groups`() {
    var control = Configuration.Control()
    control.lists.observe.append("nogroup-xyz")
    control.lists.controlUsers = ["nouser-xyz", "root"]
    let access = Access(control)
    let answers: NameService.Answers = [
      .group("vehicled"): .absent, .group("vehicled-observe"): .absent, .group("nogroup-xyz"): .absent, .user("nouser-xyz"): .absent,
      .user("root"): .number(0),
    ]
    let warnings = access.problems(answers)
    #expect(
      warnings.count == 2 && warnings.contains { $0.contains("group nogroup-xyz") } && warnings.contains { $0.contains("nouser-xyz") })
    // A default group that the administrator has written as well, here for a device, is reported.
    control = .init(devices: ["ev": .init(observe: ["vehicled-observe"])])
    #expect(Access(control).problems(answers) == ["group vehicled-observe does not exist: its entry in [device.ev] has no effect"])
  }
}
