// Appends lines to the daemon's configuration file: checks the result with the daemon's own check, replaces the file in one step, reloads,
// and reverts the change if the daemon rejects it. The existing text stays as it is, byte for byte.

import Glibc
import Protocols
import Varlink

struct ConfigurationChange {
  static let defaultPath = "/etc/vehicled/vehicled.toml"
  private static let maxSize = 1 << 20

  let path: String
  let lines: [String]

  /// Whether this user can replace the file.
  var isPermitted: Bool { access(Self.directory(of: path), W_OK | X_OK) == 0 && (access(path, W_OK) == 0 || errno == ENOENT) }

  /// The file's new text.
  static func appended(_ lines: [String], to old: [UInt8]) -> [UInt8] {
    let isComplete = old.isEmpty || old.last == UInt8(ascii: "\n")
    return old + Array(((isComplete ? "" : "\n") + (old.isEmpty ? "" : "\n") + lines.map { $0 + "\n" }.joined()).utf8)
  }

  /// Appends the lines and has the daemon reload; `reload` returns the names of the changed devices. If the daemon rejects the
  /// configuration, or does not report `device`, the old text is restored.
  func apply(device: String, reload: () throws -> [String]) throws {
    let old = try contents()
    var state = stat()
    guard lstat(path, &state) != 0 || state.st_mode & S_IFMT == S_IFREG else {
      throw Failure.other("cannot change \(path): not a regular file; add the lines to its target, then run vehiclectl reload")
    }
    let mode = old == nil ? nil : state
    let new = Self.appended(lines, to: old ?? [])
    try check(new)
    guard try contents() == old else { throw Failure.other("\(path) was changed by another program meanwhile; run setup again") }
    try write(new, like: mode)
    do {
      guard try reload().contains(device) else {
        throw Failure.other("the daemon does not read \(path): it reports no new device \(device); use --config with its file")
      }
    } catch let failure as Failure {
      // After a lost connection the daemon may have accepted the lines, which are valid: they stay.
      switch failure {
      case .rejected, .other, .unknown, .notVehicled: try revert(to: old, from: new, like: mode)
      default: throw failure
      }
      throw failure
    }
  }

  private func revert(to old: [UInt8]?, from new: [UInt8], like state: stat?) throws(Failure) {
    guard try contents() == new else { return }  // another program has changed it since
    if let old { try write(old, like: state) } else { unlink(path) }
  }

  /// The file's bytes; nil if it does not exist.
  private func contents() throws(Failure) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw .other("cannot read \(path): \(String(cString: strerror(errno)))") }
      return nil
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: Self.maxSize + 1)
    var count = 0
    while count < bytes.count {
      let part = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress.map { $0 + count }, $0.count - count) }
      if part < 0, errno == EINTR { continue }
      guard part >= 0 else { throw .other("cannot read \(path): \(String(cString: strerror(errno)))") }
      if part == 0 { break }
      count += part
    }
    guard count <= Self.maxSize else { throw .other("cannot change \(path): larger than 1 MiB; check that it is the right file") }
    return Array(bytes.prefix(count))
  }

  /// Runs `vehicled --check-config` on the text. If vehicled is not found, only the reload checks the text.
  private func check(_ text: [UInt8]) throws(Failure) {
    guard let program = Self.daemonProgram else { return }
    // The temporary file is next to the real one, so that signals.d and the drop-ins are read as well.
    let temporary = "\(Self.directory(of: path))/.vehicled-check.\(getpid())"
    defer {
      unlink(temporary)
      unlink("\(temporary).d")
    }
    try fill(temporary, text, like: nil)
    let name = path.split(separator: "/").last.map(String.init) ?? path
    if access("\(path).d", F_OK) == 0 { symlink("\(name).d", "\(temporary).d") }
    guard let (status, errors) = ChildProcess.run([program, "--check-config", "--config", temporary], capturesErrors: true) else { return }
    guard status != 0 else { return }
    let cause = errors.replacing("vehicled: ", with: "").replacing(temporary, with: path).split(separator: "\n").joined(separator: "\n")
    throw .other("nothing written: the configuration would not be valid\n\(cause)")
  }

  /// The path of vehicled: beside this program, or where packages install it.
  private static var daemonProgram: String? {
    let own = ChildProcess.ownPath.map { directory(of: $0) + "/vehicled" }
    return [own, "/usr/bin/vehicled"].compactMap(\.self).first { access($0, X_OK) == 0 }
  }

  /// Replaces the file, with the owner and permissions of the old one.
  private func write(_ bytes: [UInt8], like state: stat?) throws(Failure) {
    let temporary = "\(Self.directory(of: path))/.vehicled-setup.\(getpid())"
    do throws(Failure) {
      try fill(temporary, bytes, like: state)
      guard rename(temporary, path) == 0 else { throw failure("write", errno) }
    } catch {
      unlink(temporary)
      throw error
    }
  }

  private func fill(_ file: String, _ bytes: [UInt8], like state: stat?) throws(Failure) {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw failure("write", errno) }
    if let state {
      if state.st_uid != geteuid() || state.st_gid != getegid() { _ = fchown(descriptor, state.st_uid, state.st_gid) }
      fchmod(descriptor, state.st_mode & 0o7777)
    }
    let isWritten = Output.write(all: bytes[...], to: descriptor) && fsync(descriptor) == 0
    let error = errno
    close(descriptor)
    guard isWritten else { throw failure("write", error) }
  }

  private func failure(_ verb: String, _ error: Int32) -> Failure {
    .other("cannot \(verb) \(path): \(String(cString: strerror(error))); see vehicled.toml(5)")
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
