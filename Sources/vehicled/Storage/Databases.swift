// SQLite databases in the state directory's import/, for the protocol state machines that query them (`Effect.query`). The
// daemon never writes to these databases: it copies a database with its journal, queries the copy, and removes the copy. Writers are
// blocked only while the files are copied. These functions block, so they must not run on the loop.
// Source: SQLite's documentation of its file format (locks), of write-ahead logs and of hot journals.

import Glibc
import Protocols
import ServiceRuntime

extension Disk {
  /// Queries a database on the thread for long reads.
  func query(_ query: DatabaseQuery, then finish: @escaping @Loop @Sendable (DatabaseAnswer) -> Void) {
    let databases = Databases(state: directory)
    read { () throws(ValueError) in
      databases.answer(query)
    } then: { result in
      switch result {
      case .success(let answer): finish(answer)
      case .failure(let error): finish(.failed(error.description))
      }
    }
  }
}

/// The databases of one state directory. Only one query may run at a time.
struct Databases: Sendable {
  /// The state directory.
  let state: String
  /// The maximum size of a database with its journal, in bytes.
  var maxSize: Int64 = 512 << 20
  /// The maximum time of the query itself.
  var timeout: Nanoseconds = 30 * .second
  /// The maximum time to wait while a writer has locked the database.
  var lockTimeout: Nanoseconds = 2 * .second

  /// The directory with the original databases.
  var folder: String { "\(state)/import" }
  /// The directory that contains the copy while a query runs. Files that an earlier run left there are removed before the next copy.
  private var copies: String { "\(state)/.import" }
  /// The path of the copy.
  private var copy: String { "\(copies)/database" }
  /// The suffixes of the files of a database.
  private static let suffixes = ["", "-wal", "-journal"]

  /// Copies the database and runs the query. Blocks until there is an answer.
  func answer(_ query: DatabaseQuery) -> DatabaseAnswer {
    let name = query.file
    guard !name.isEmpty, !name.hasPrefix("."), !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }) else {
      return .failed("\(quoted(name)) is not a file name; give the name of a file in \(folder), without a directory")
    }
    let path = "\(folder)/\(name)"
    do throws(ValueError) {
      guard let directory = try openFolder() else { return .missing }
      defer { close(directory) }
      guard let before = try stamp(path, name, in: directory) else { return .missing }
      if before == query.knownStamp { return .unchanged }
      try removeCopy()
      defer { try? removeCopy() }
      try copy(path, name, in: directory)
      guard let after = try stamp(path, name, in: directory) else { return .missing }
      guard before == after else { throw ValueError("\(path) changed while being read; it will be read again once it stops changing") }
      return .rows(try DatabaseCopy(copy, of: path, timeout: timeout).rows(query), after)
    } catch {
      return .failed(error.description)
    }
  }

  // MARK: The copy

  /// Opens the directory, never through a symbolic link; nil if it does not exist.
  private func openFolder() throws(ValueError) -> CInt? {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    if descriptor >= 0 { return descriptor }
    switch errno {
    case ENOENT: return nil
    case ENOTDIR, ELOOP: throw ValueError("\(folder) is not a directory, or is a symbolic link; replace it with a directory")
    case let code: throw Self.unreadable(folder, code)
    }
  }

  /// The size and modification time of the database with its journal; nil if it does not exist.
  private func stamp(_ path: String, _ name: String, in directory: CInt) throws(ValueError) -> FileStamp? {
    var stamp: FileStamp?
    for suffix in Self.suffixes {
      var status = Glibc.stat()
      guard fstatat(directory, name + suffix, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
        if errno != ENOENT { throw Self.unreadable(path + suffix, errno) }
        if suffix.isEmpty { return nil }
        continue
      }
      try Self.check(status, path + suffix)
      // Checked before the sum, which could overflow: a sparse file can have any size.
      guard status.st_size <= maxSize else { throw tooLarge(path, Int64(status.st_size)) }
      let modified = Int64(status.st_mtim.tv_sec) &* .second &+ Int64(status.st_mtim.tv_nsec)
      stamp = FileStamp(size: (stamp?.size ?? 0) + Int64(status.st_size), modified: max(stamp?.modified ?? .min, modified))
    }
    if let stamp, stamp.size > maxSize { throw tooLarge(path, stamp.size) }
    return stamp
  }

  private func tooLarge(_ path: String, _ size: Int64) -> ValueError {
    ValueError("\(path) is \(size >> 20) MiB, more than the maximum of \(maxSize >> 20) MiB; export less data")
  }

  private static func check(_ status: Glibc.stat, _ path: String) throws(ValueError) {
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFLNK: throw ValueError("\(path) is a symbolic link; put the file itself there")
    case S_IFDIR: throw ValueError("\(path) is a directory; replace it with the database")
    default: throw ValueError("\(path) is not a regular file; replace it with the database")
    }
  }

  private static func unreadable(_ path: String, _ code: CInt) -> ValueError {
    let remedy = code == EACCES ? "; make it readable for user \(Accounts.ownName)" : ""
    return ValueError("cannot read \(path): \(errnoMessage(code))\(remedy)")
  }

  private func copy(_ path: String, _ name: String, in directory: CInt) throws(ValueError) {
    guard mkdir(copies, 0o700) == 0 else { throw ValueError("cannot create directory \(copies): \(errnoMessage(errno))") }
    var remaining = maxSize
    // All files stay open until the end, so that the lock on the database is held until its journal is copied as well.
    var opened: [CInt] = []
    defer { for descriptor in opened { close(descriptor) } }
    for suffix in Self.suffixes {
      let source = openat(directory, name + suffix, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      guard source >= 0 else {
        if errno == ENOENT, !suffix.isEmpty { continue }
        throw Self.unreadable(path + suffix, errno)
      }
      opened.append(source)
      var status = Glibc.stat()
      guard fstat(source, &status) == 0 else { throw Self.unreadable(path + suffix, errno) }
      try Self.check(status, path + suffix)
      if suffix.isEmpty { try lock(source, path) }
      try copyContents(of: source, path + suffix, to: copy + suffix, &remaining)
    }
  }

  /// Linux's F_OFD_SETLK, which Swift does not import. The lock belongs to the open file description, not to the process.
  private static let setLock: CInt = 37

  /// Takes the shared lock of an SQLite reader, which keeps writers from changing the file. On a file system without locks, a
  /// change is detected only by comparing size and modification time after the copy.
  private func lock(_ descriptor: CInt, _ path: String) throws(ValueError) {
    var shared = flock()
    (shared.l_type, shared.l_whence) = (Int16(F_RDLCK), Int16(SEEK_SET))
    (shared.l_start, shared.l_len) = (0x4000_0002, 510)  // SHARED_FIRST and SHARED_SIZE of SQLite
    let end = Clock.monotonic() + lockTimeout
    while fcntl(descriptor, Self.setLock, &shared) != 0, errno == EAGAIN || errno == EACCES {
      guard Clock.monotonic() < end else {
        throw ValueError("\(path) is locked: another program is writing to it; close that program, or put a finished export there")
      }
      usleep(20_000)
    }
  }

  /// Copies a file. `path` is its path, for messages; `remaining` is the number of bytes that may still be copied.
  private func copyContents(of source: CInt, _ path: String, to target: String, _ remaining: inout Int64) throws(ValueError) {
    let out = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard out >= 0 else { throw ValueError("cannot write \(target): \(errnoMessage(errno))") }
    defer { close(out) }
    var chunk = [UInt8](repeating: 0, count: 1 << 17)
    while true {
      let count = Glibc.read(source, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Self.unreadable(path, errno) }
      if count == 0 { return }
      remaining -= Int64(count)
      guard remaining >= 0 else { throw ValueError("\(path) is larger than the maximum of \(maxSize >> 20) MiB; export less data") }
      var rest = chunk[..<count]
      while !rest.isEmpty {
        let written = rest.withUnsafeBytes { Glibc.write(out, $0.baseAddress, $0.count) }
        if written < 0, errno == EINTR { continue }
        guard written > 0 else {
          let isFull = errno == ENOSPC || errno == EDQUOT
          throw ValueError("cannot copy \(path) to \(target): \(errnoMessage(errno))\(isFull ? "; free some space" : "")")
        }
        rest = rest.dropFirst(written)
      }
    }
  }

  /// Removes the copy and the files that SQLite created beside it.
  private func removeCopy() throws(ValueError) {
    // If there is a symbolic link instead of the directory, only the link is removed.
    if unlink(copies) != 0 { for name in Files.list(copies) { unlink("\(copies)/\(name)") } }
    guard rmdir(copies) == 0 || errno == ENOENT else {
      throw ValueError("cannot remove \(copies): \(errnoMessage(errno)); remove it by hand")
    }
  }
}
