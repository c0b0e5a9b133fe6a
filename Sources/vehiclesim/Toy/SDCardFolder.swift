// The folder that holds the files of a simulated SD card. Files are replaced atomically. A file belongs to the card if its name consists of
// lower-case letters and digits, and ends in `.txt`; other files in the folder are not touched.

import Glibc
import Protocols

struct SDCardFolder {
  private let path: String
  private static let maxFileSize = 4096

  /// Opens the folder, or creates it with mode 0700.
  init(_ path: String) throws {
    self.path = path
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw SimulatorError("cannot create the folder \(path) for the card", errno: errno) }
  }

  private static func isCardFile(_ name: String) -> Bool {
    name.hasSuffix(".txt") && name.utf8.count > 4
      && name.utf8.dropLast(4).allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) }
  }

  /// All files of the card, by name.
  func contents() throws -> [String: [UInt8]] {
    guard let folder = opendir(path) else { throw SimulatorError("cannot read the card in \(path)", errno: errno) }
    defer { closedir(folder) }
    var files: [String: [UInt8]] = [:]
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if Self.isCardFile(name), let bytes = read(name) { files[name] = bytes }
    }
    return files
  }

  private func read(_ name: String) -> [UInt8]? {
    let file = open("\(path)/\(name)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: Self.maxFileSize)
    let count = Glibc.read(file, &bytes, bytes.count)
    return count < 0 ? nil : Array(bytes.prefix(count))
  }

  /// Stores a file, or removes it if `bytes` is empty. Returns an error message on failure.
  func store(_ name: String, _ bytes: [UInt8]) -> String? {
    guard Self.isCardFile(name) else { return "invalid card file name \(name)" }
    let target = "\(path)/\(name)"
    if bytes.isEmpty {
      return unlink(target) == 0 || errno == ENOENT ? nil : "cannot remove \(target): \(String(cString: strerror(errno)))"
    }
    let temporary = "\(path)/.\(name).new"
    let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { return "cannot write \(target): \(String(cString: strerror(errno)))" }
    let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    let code = errno
    close(file)
    guard count == bytes.count else { return "cannot write \(target): \(count < 0 ? String(cString: strerror(code)) : "disk full")" }
    return rename(temporary, target) == 0 ? nil : "cannot write \(target): \(String(cString: strerror(errno)))"
  }
}
