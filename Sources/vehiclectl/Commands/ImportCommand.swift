// import: converts signal definitions from other programs to a file for signals.d, without the daemon. Does not write to symbolic links,
// because it is usually run as root.

import ArgumentParser
import Glibc
import Protocols
import SignalImport

struct ImportCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Convert DBC, OBDb or Torque signal definitions for vehicled.",
    discussion: """
      FILE is a signal set from https://github.com/OBDb (signalsets/v3/default.json in a car's repository), a CSV file from Torque, or a \
      DBC file with the signals of a CAN bus. The result is a file for /etc/vehicled/signals.d, which defines additional properties of a \
      car, or the properties of a device of kind can. The command lists the signals that it cannot convert on stderr, with the reasons. \
      Examples:
        sudo vehiclectl import default.json --device ev --output /etc/vehicled/signals.d/ev6.toml
        sudo vehiclectl import car.dbc --output /etc/vehicled/signals.d/car.toml
        vehiclectl import car.dbc --only 'Engine*' --only VehicleSpeed
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: "The device to which the signals apply (default: all devices of kind obd, or can).", completion: .devices)
  var device: String?
  @Option(help: "The file to write; - is stdout.", completion: .file())
  var output = "-"
  @Option(help: ArgumentHelp("Convert only the signals for this model year.", valueName: "year"))
  var year: Int?
  @Option(
    help: ArgumentHelp(
      "Convert only the signals of a DBC file whose name, or that of their message, matches this pattern with * and ?. Repeatable.",
      valueName: "pattern"))
  var only: [String] = []
  @Flag(help: "Overwrite an existing file.")
  var force = false
  @Argument(help: "The file to read; - is stdin.", completion: .file(extensions: ["json", "csv", "dbc"]))
  var file: String

  func perform(_ output: Output) throws {
    if let year, !(1900...2999).contains(year) { throw Failure.usage("invalid model year \(year); use four digits, as in --year 2021") }
    if let device, !Self.isName(device) {
      throw Failure.usage("invalid device name \"\(device)\"; use the NAME of its section [device.NAME]")
    }
    if self.output != "-" { try Self.check(self.output, force: force) }
    let found: any ImportResult
    do throws(ValueError) {
      let bytes = try Self.contents(of: file)
      if ImportedCANSignals.isDBC(bytes) {
        guard year == nil else { throw ValueError("a DBC file has no model years; leave out --year") }
        found = try ImportedCANSignals(bytes, only: only)
      } else {
        guard only.isEmpty else { throw ValueError("only a DBC file has messages to select; leave out --only") }
        found = try ImportedSignals(bytes, year: year)
      }
    } catch {
      throw Failure.other("cannot import \(file): \(error.description)")
    }
    for remark in found.skipped { output.note(Output.oneLine("not converted: \(remark.place): \(remark.message)")) }
    if found.skippedCount > found.skipped.count { output.note("not converted: \(found.skippedCount - found.skipped.count) more") }
    for remark in found.notes { output.note(Output.oneLine("note: \(remark.place): \(remark.message)")) }
    guard found.count > 0 else {
      throw Failure.other(Output.oneLine("cannot import \(file): no signal can be converted: \(found.failure)"))
    }
    let source = file == "-" ? "stdin" : file.split(separator: "/").last.map(String.init) ?? file
    let text = Array(found.file(from: source, device: device).utf8)
    guard self.output != "-" else { return output.bytes(text) }
    try AtomicFile.write(text, to: self.output, force: force, mode: 0o644)
    if output.json { return output.json(Self.summary(found)) }
    output.note(Self.result(found.count, notConverted: found.skippedCount, in: self.output))
  }

  static func result(_ count: Int, notConverted: Int, in file: String) -> String {
    "wrote \(file): \(count) \(count == 1 ? "signal" : "signals"), \(notConverted) not converted"
  }

  private static func summary(_ found: any ImportResult) -> JSON {
    func list(_ remarks: [ImportRemarks.Remark]) -> JSON {
      .array(remarks.map { ["place": .string($0.place), "reason": .string($0.message)] })
    }
    return ["imported": .int(found.count), "skipped": list(found.skipped), "notes": list(found.notes)]
  }

  private static func isName(_ name: String) -> Bool {
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    let others: Set<UInt8> = Set(UInt8(ascii: "0")...UInt8(ascii: "9")).union([UInt8(ascii: "-")])
    guard let first = name.utf8.first, letters.contains(first), name.utf8.count <= 32 else { return false }
    return name.utf8.allSatisfy { letters.contains($0) || others.contains($0) }
  }

  private static func check(_ path: String, force: Bool) throws(Failure) {
    var state = stat()
    if lstat(path, &state) == 0, state.st_mode & S_IFMT == S_IFLNK {
      throw .usage("cannot write \(path): it is a symbolic link; name the file itself")
    }
    try AtomicFile.check(path, force: force)
  }

  /// The contents of a file or stdin, up to one chunk more than ImportedSignals accepts.
  private static func contents(of path: String) throws(ValueError) -> [UInt8] {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ValueError("\(String(cString: strerror(errno))); check the name") }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count <= ImportedSignals.maxFileSize {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw ValueError("\(String(cString: strerror(errno))); check the name") }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return bytes
  }
}
