// The folder in which a simulated card's files lie. A file is replaced at once or not at all. It must never touch what does not
// look like a file of a card: letters and digits, and `.txt`.

import Glibc
import Protocols

struct CardFolder {
  private let path: String
  private static let longest = 4096

  /// The folder there; it is made, for its owner alone, where it is not.
  init(_ path: String) throws {
    self.path = path
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw SimulatorError("cannot make the folder \(path) for the card", errno: errno) }
  }

  private static func isName(_ name: String) -> Bool {
    name.hasSuffix(".txt") && name.utf8.count > 4
      && name.utf8.dropLast(4).allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) }
  }

  /// All of its files, by name.
  func contents() throws -> [String: [UInt8]] {
    guard let folder = opendir(path) else { throw SimulatorError("cannot read the card in \(path)", errno: errno) }
    defer { closedir(folder) }
    var files: [String: [UInt8]] = [:]
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if Self.isName(name), let bytes = read(name) { files[name] = bytes }
    }
    return files
  }

  private func read(_ name: String) -> [UInt8]? {
    let file = open("\(path)/\(name)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: Self.longest)
    let count = Glibc.read(file, &bytes, bytes.count)
    return count < 0 ? nil : Array(bytes.prefix(count))
  }

  /// Keeps a file, or removes it where it is empty; why not, in a person's words.
  func store(_ name: String, _ bytes: [UInt8]) -> String? {
    guard Self.isName(name) else { return "\(name) is no file of a card" }
    let place = "\(path)/\(name)"
    if bytes.isEmpty {
      return unlink(place) == 0 || errno == ENOENT ? nil : "cannot remove \(place): \(String(cString: strerror(errno)))"
    }
    let fresh = "\(path)/.\(name).new"
    let file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { return "cannot write \(place): \(String(cString: strerror(errno)))" }
    let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    let code = errno
    close(file)
    guard count == bytes.count else { return "cannot write \(place): \(count < 0 ? String(cString: strerror(code)) : "the disk is full")" }
    return rename(fresh, place) == 0 ? nil : "cannot write \(place): \(String(cString: strerror(errno)))"
  }
}
