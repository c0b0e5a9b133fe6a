// import: signal descriptions of other programs as a file of signals.d. It asks no daemon. Must never overwrite what it was not told
// to, nor write through a symbolic link: whoever imports for the daemon is root.

import ArgumentParser
import Glibc
import Protocols

struct ImportCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Make a file of signals.d of OBDb's or Torque's signals.",
    discussion: """
      FILE is a signal set of https://github.com/OBDb (signalsets/v3/default.json of a car) or a CSV file of Torque. What cannot be said
      in formulas of vehicled's is listed on stderr, with the reason. For example:
      vehiclectl import default.json --device ev --output /etc/vehicled/signals.d/ev6.toml
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: "The device that shall have the signals; else all of kind obd.", completion: .devices)
  var device: String?
  @Option(help: "The file to write, - for stdout.", completion: .file())
  var output = "-"
  @Option(help: ArgumentHelp("Take the signals of a signal set that are for this model year.", valueName: "year"))
  var year: Int?
  @Flag(help: "Overwrite the file.")
  var force = false
  @Argument(help: "The file to read, - for stdin.", completion: .file(extensions: ["json", "csv"]))
  var file: String

  func perform(_ output: Output) throws {
    if let year, !(1900...2999).contains(year) { throw Failure.usage("\(year) is no model year; write four digits, as in --year 2021") }
    if let device, !Self.isName(device) {
      throw Failure.usage("\"\(device)\" is no name of a device; give the one in its section, [device.NAME]")
    }
    if self.output != "-" { try Self.check(self.output, force: force) }
    let found: SignalImport
    do throws(ValueError) { found = try SignalImport(Self.contents(of: file), year: year) } catch {
      throw Failure.other("cannot import \(file): \(error.description)")
    }
    for remark in found.leftOut { output.note(Output.oneLine("left out: \(remark.place): \(remark.message)")) }
    if found.leftOutCount > found.leftOut.count { output.note("left out: \(found.leftOutCount - found.leftOut.count) more") }
    for remark in found.notes { output.note(Output.oneLine("note: \(remark.place): \(remark.message)")) }
    guard found.count > 0 else {
      throw Failure.other(Output.oneLine("nothing in \(file) can be imported: \(found.failure)"))
    }
    let source = file == "-" ? "what stdin said" : file.split(separator: "/").last.map(String.init) ?? file
    let text = Array(found.file(from: source, device: device).utf8)
    guard self.output != "-" else { return output.bytes(text) }
    try AtomicFile.write(text, to: self.output, force: force, mode: 0o644)
    if output.json { return output.json(Self.summary(found)) }
    output.note("\(found.count) signals are in \(self.output), \(found.leftOutCount) were left out")
  }

  private static func summary(_ found: SignalImport) -> JSON {
    func list(_ remarks: [SignalImport.Remark]) -> JSON {
      .array(remarks.map { ["place": .string($0.place), "reason": .string($0.message)] })
    }
    return ["imported": .int(found.count), "leftOut": list(found.leftOut), "notes": list(found.notes)]
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
      throw .usage("\(path) is a symbolic link, which is not followed; name the file itself")
    }
    try AtomicFile.check(path, force: force)
  }

  /// All of a file, or of stdin; a longer one than is read is told by the reader.
  private static func contents(of path: String) throws(ValueError) -> [UInt8] {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ValueError("\(String(cString: strerror(errno))); check the name") }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count <= SignalImport.maxFileSize {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw ValueError("\(String(cString: strerror(errno))); check the name") }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return bytes
  }
}
