// The generator of tables from the data files of vehicles: an invalid entry ends the build with a message that names it.

import Glibc
import Testing

@Suite struct VehicleTablesTests {
  private static let generator = #filePath.split(separator: "/Tests/")[0] + "/Sources/VehicleTables/generate.py"
  private static let groups = """
    table = "StandardParameter"
    [groups]
    drive = ["speed*"]
    [ranks]
    [lengths]
    [signal]

    """

  /// Generates the tables of a data file. Returns what the generator has printed, and whether it succeeded.
  private func generate(_ signal: String, after head: String = Self.groups) throws -> (succeeds: Bool, output: String) {
    var template = Array("/tmp/vehicle-tables-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { system("rm -r \(folder)") }
    let file = try #require(fopen("\(folder)/data.toml", "w"))
    fputs(head + signal, file)
    fclose(file)
    // A profile has the groups of this file.
    let shown = try #require(fopen("\(folder)/hyundai.toml", "w"))
    fputs("groups = {}\nranks = {}\n", shown)
    fclose(shown)
    let pipe = try #require(popen("python3 \(Self.generator) \(folder)/out \(folder)/data.toml 2>&1", "r"))
    var output = ""
    var line = [CChar](repeating: 0, count: 4096)
    while fgets(&line, 4096, pipe) != nil {
      output += String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    return (pclose(pipe) == 0, output)
  }

  @Test(
    arguments: [
      (#"rpm = { request = "010C", length = 2, value = "A", help = "h" }"#, "error: rpm: no pattern of [groups] matches the name; correct"),
      (#"speed = { request = "0X0D", length = 1, value = "A", help = "h" }"#, "error: speed: 0X0D is not a PID of service 01; correct"),
      (#"speed = { request = "010D", length = 1, value = "A", help = "h", uint = "km/h" }"#, "error: speed: unknown keys uint; correct"),
    ])
  func `an invalid entry is named with its file`(_ signal: String, _ message: String) throws {
    let (succeeds, output) = try generate(signal)
    #expect(!succeeds && output.contains("data.toml: \(message)") && !output.contains("Traceback"), "\(output)")
  }

  private static let profile = """
    [profile]
    name = "nissan-leaf"
    title = "Nissan Leaf"
    vins = ["SJNFAAZE"]
    [groups]
    drive = ["speed*"]
    [ranks]
    [[record]]
    header = "797"
    reply = "79A"
    request = "22121A"
    period = 0.5
    [record.signal]
    speed = { value = "A", unit = "km/h", help = "h" }

    """

  @Test(arguments: [
    ("22121A", "2E121A", "2E121A is not a request of service 21 or 22"), ("\"79A\"", "\"79AB\"", "79AB is not a CAN identifier of"),
    ("SJNFAAZE", "SJNFAAZO", "SJNFAAZO is not the beginning of a VIN"), ("period = 0.5\n", "", "22121A: period is missing"),
    ("title", "titel", "[profile]: unknown keys titel"), ("period = 0.5", "period = 1", ""),
  ])
  func `a profile only reads, and names its invalid entries`(_ text: String, _ replacement: String, _ message: String) throws {
    let (succeeds, output) = try generate(Self.profile.replacing(text, with: replacement), after: "")
    #expect(succeeds == message.isEmpty && (succeeds || output.contains(message)) && !output.contains("Traceback"), "\(output)")
  }

  private static let canProfile = """
    [profile]
    name = "model-1"
    title = "Model 1"
    bit-rate = 500000
    [can-signal.speed]
    can-id = "257"
    bits = "12|12@1+"
    factor = -0.000001
    labels = ["4095: \\"not\\" available"]
    group = "drive"
    help = "h"

    """

  @Test(arguments: [
    ("group = \"drive\"\n", "", "speed: group is missing"), ("help", "hlep", "speed: unknown keys hlep"),
    ("bit-rate", "rate", "[profile]: unknown keys rate"), ("500000", "250000", ""),
  ])
  func `signals of a vehicle on a CAN bus have the keys of signals d`(_ text: String, _ replacement: String, _ message: String) throws {
    let (succeeds, output) = try generate(Self.canProfile.replacing(text, with: replacement), after: "")
    #expect(succeeds == message.isEmpty && (succeeds || output.contains(message)) && !output.contains("Traceback"), "\(output)")
  }

  @Test func `a valid entry makes a table`() throws {
    let (succeeds, output) = try generate(#"speed = { request = "010D", length = 1, value = "A", unit = "km/h", help = "h" }"#)
    #expect(succeeds && output.isEmpty, "\(output)")
  }
}
