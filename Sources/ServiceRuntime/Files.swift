// Blocking file operations. They throw a ValueError, whose message names the path, or a FileError with the errno.

import CLinux
import Glibc
import Protocols

/// The errno of a file operation; EFBIG for a file longer than the caller's limit.
public struct FileError: Error {
  public let code: CInt
}

public enum Files {
  /// Reads a whole file of at most `limit` bytes. Throws EINVAL for a FIFO.
  public static func contents(of path: String, limit: Int) throws(FileError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw FileError(code: errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw FileError(code: errno) }
    guard status.st_mode & S_IFMT != S_IFIFO else { throw FileError(code: EINVAL) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw FileError(code: errno) }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else { throw FileError(code: EFBIG) }
    }
  }

  /// Reads a whole file like `contents`, but throws an error with a message.
  public static func read(_ path: String, limit: Int) throws(ValueError) -> [UInt8] {
    do throws(FileError) {
      return try contents(of: path, limit: limit)
    } catch {
      let reason =
        switch error.code {
        case EFBIG: "longer than \(limit) bytes"
        case EINVAL: "not a regular file"
        default: errnoMessage(error.code)
        }
      throw ValueError("cannot read \(path): \(reason)")
    }
  }

  /// Replaces the contents of a file atomically, with mode 0600.
  public static func replace(_ path: String, with bytes: [UInt8]) throws(ValueError) {
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    let temporary = "\(path[..<slash])/.\(path[slash...].dropFirst()).new"
    // A file of this name may be left from an earlier run, or be a link to another file.
    unlink(temporary)
    try write(temporary, bytes, flags: O_CREAT | O_EXCL)
    guard rename(temporary, path) == 0 else { throw ValueError("cannot write \(path): \(errnoMessage(errno))") }
  }

  /// Writes to a file, opened with these flags of open(2) and never through a symbolic link. If writing fails and the flags include
  /// O_CREAT, removes the file.
  public static func write(_ path: String, _ bytes: [UInt8], flags: CInt) throws(ValueError) {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0o600)
    guard descriptor >= 0 else { throw ValueError("cannot write \(path): \(errnoMessage(errno))") }
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else {
        let error = ValueError("cannot write \(path): \(errnoMessage(errno))")
        if flags & O_CREAT != 0 { unlink(path) }
        throw error
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Locks a file until the returned descriptor is closed, or returns nil if another process has locked it. Creates the file with mode
  /// 0600: other users can lock every file or directory that they can open. If the file system does not support locks, nothing is locked.
  public static func lock(_ path: String) throws(FileError) -> CInt? {
    while true {
      // Not for writing: an open file would prevent that the file system is remounted read-only.
      let descriptor = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
      guard descriptor >= 0 else { throw FileError(code: errno) }
      var (opened, named) = (stat(), stat())
      var result = flock(descriptor, LOCK_EX | LOCK_NB)
      while result != 0, errno == EINTR { result = flock(descriptor, LOCK_EX | LOCK_NB) }
      if result != 0, errno == EWOULDBLOCK {
        close(descriptor)
        return nil
      }
      // The process that held the lock before may have removed the file.
      if fstat(descriptor, &opened) == 0, lstat(path, &named) == 0, opened.st_ino == named.st_ino { return descriptor }
      close(descriptor)
    }
  }

  /// Creates a directory and its parents, with mode 0700.
  public static func makeDirectory(_ path: String) throws(ValueError) {
    guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
    if errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex {
      try makeDirectory(String(path[..<slash]))
      if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    }
    throw ValueError("cannot create directory \(path): \(errnoMessage(errno))")
  }

  /// Creates a directory and its parents below `root` with mode 0700. None of them may be a symbolic link, except `root`.
  public static func makeDirectory(_ relative: String, below root: String) throws(ValueError) {
    try makeDirectory(root)
    var path = root
    for name in relative.split(separator: "/") {
      path += "/\(name)"
      var status = stat()
      if mkdir(path, 0o700) == 0 { continue }
      guard errno == EEXIST else { throw ValueError("cannot create directory \(path): \(errnoMessage(errno))") }
      guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        throw ValueError("cannot write to \(path): not a directory, or a symbolic link; replace it with a directory")
      }
    }
  }

  /// The names in a directory, sorted by bytes.
  public static func names(in path: String) throws(FileError) -> [String] {
    guard let directory = opendir(path) else { throw FileError(code: errno) }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// The names in a directory, sorted by bytes; empty if it cannot be read.
  public static func list(_ path: String) -> [String] {
    (try? names(in: path)) ?? []
  }

  /// Syncs the files of a directory and the directory itself.
  public static func sync(_ folder: String) {
    for path in list(folder).map({ "\(folder)/\($0)" }) + [folder] {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 {
        fsync(descriptor)
        close(descriptor)
      }
    }
  }
}
