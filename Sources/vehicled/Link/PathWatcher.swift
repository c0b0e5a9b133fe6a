// Detects with inotify(7) that a serial port may have appeared or that its permissions have changed. It watches only directories, and
// only while a link is waiting: the port's directory and, if the port is a symbolic link (/dev/serial/by-id), the directory of the
// target. In place of a missing directory, it watches the nearest existing ancestor.

import CLinux
import Glibc
import Protocols

@Loop final class PathWatcher {
  static let shared = PathWatcher()

  private struct Client {
    let path: String
    let changed: @Loop () -> Void
    /// The names to wait for, by directory.
    var places: [String: Set<String>] = [:]
  }

  private var clients: [ObjectIdentifier: Client] = [:]
  /// The inotify descriptor; negative if the kernel does not provide one.
  private lazy var descriptor = inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC))
  private var source: KernelEventReader?
  /// The watched directories, by watch descriptor.
  private var directories: [CInt: String] = [:]
  /// The watch descriptors, by directory.
  private var watches: [String: CInt] = [:]

  private static let mask = UInt32(IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
  /// The kernel's limit: a longer chain of symbolic links counts as a loop.
  private static let maxSymbolicLinks = 40

  /// Calls `changed` in a later turn of the event loop whenever a file has appeared at the path or its attributes have changed, until
  /// `stop`.
  func watch(_ path: String, for client: AnyObject, _ changed: @escaping @Loop () -> Void) {
    guard path.hasPrefix("/") else { return }
    if source == nil, descriptor >= 0 { source = KernelEventReader(descriptor) { [weak self] in self?.received($0) } }
    clients[ObjectIdentifier(client)] = Client(path: path, changed: changed)
    update()
  }

  func stop(for client: AnyObject) {
    guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
    update()
  }

  /// The directories that are watched now.
  var watched: Set<String> { Set(watches.keys) }

  /// Watches the directories of all clients, and no others. Returns those that were not watched before.
  @discardableResult private func update() -> Set<String> {
    guard descriptor >= 0 else { return [] }
    var added: Set<String> = []
    for key in clients.keys {
      guard let path = clients[key]?.path else { continue }
      // A directory can appear before its watch is set, which changes the result, so repeat until the result is stable.
      var places: [String: Set<String>] = [:]
      for _ in 0..<8 {
        let current = Self.places(of: path)
        guard current != places else { break }
        places = current
        for directory in places.keys where watches[directory] == nil {
          add(directory)
          added.insert(directory)
        }
      }
      clients[key]?.places = places
    }
    let needed = Set(clients.values.flatMap(\.places.keys))
    for (directory, watch) in watches where !needed.contains(directory) {
      inotify_rm_watch(descriptor, watch)
      forget(watch)
    }
    return added
  }

  private func add(_ directory: String) {
    let watch = inotify_add_watch(descriptor, directory, Self.mask)
    guard watch >= 0 else { return }
    // Two paths to the same directory have the same watch descriptor; the last path is used for both.
    if let other = directories[watch] { watches[other] = nil }
    directories[watch] = directory
    watches[directory] = watch
  }

  private func forget(_ watch: CInt) {
    if let directory = directories.removeValue(forKey: watch) { watches[directory] = nil }
  }

  private func received(_ bytes: [UInt8]) {
    let events = Self.events(bytes)
    var affected: Set<ObjectIdentifier> = []
    for event in events {
      if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { affected.formUnion(clients.keys) }
      guard let directory = directories[event.watch] else { continue }
      if event.mask & UInt32(IN_MOVE_SELF) != 0 { inotify_rm_watch(descriptor, event.watch) }
      if event.mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED) != 0 { forget(event.watch) }
      for (key, client) in clients where client.places[directory]?.contains(event.name) == true { affected.insert(key) }
    }
    // In a directory that was not watched until now, the file may already be present.
    let added = update()
    for (key, client) in clients where affected.contains(key) || !added.isDisjoint(with: client.places.keys) {
      if access(client.path, F_OK) == 0 { client.changed() }
    }
  }

  /// The directories to watch for a path, with the names to wait for in each.
  static func places(of path: String) -> [String: Set<String>] {
    var places: [String: Set<String>] = [:]
    var path = path
    for _ in 0..<maxSymbolicLinks {
      var (directory, name) = split(path)
      while directory != "/", !isDirectory(directory) { (directory, name) = split(directory) }
      places[directory, default: []].insert(name)
      var target = [CChar](repeating: 0, count: Int(PATH_MAX))
      let length = readlink(path, &target, target.count)
      guard length > 0 else { break }
      let text = String(decoding: target.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      path = normalised(text.hasPrefix("/") ? text : "\(split(path).directory)/\(text)")
    }
    return places
  }

  private static func isDirectory(_ path: String) -> Bool {
    var information = stat()
    return stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFDIR
  }

  private static func split(_ path: String) -> (directory: String, name: String) {
    let parts = path.split(separator: "/")
    return ("/" + parts.dropLast().joined(separator: "/"), String(parts.last ?? ""))
  }

  /// The absolute path without `.` and `..`.
  private static func normalised(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part != ".." { parts.append(part) } else if !parts.isEmpty { parts.removeLast() }
    }
    return "/" + parts.joined(separator: "/")
  }

  /// The events of a read from inotify: watch, mask, and the name in the directory (empty for the directory itself).
  static func events(_ bytes: [UInt8]) -> [(watch: CInt, mask: UInt32, name: String)] {
    var events: [(CInt, UInt32, String)] = []
    var start = 0
    bytes.withUnsafeBytes { bytes in
      while start + 16 <= bytes.count {
        let length = Int(bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self))
        guard start + 16 + length <= bytes.count else { break }
        let name = bytes[(start + 16)..<(start + 16 + length)].prefix { $0 != 0 }
        events.append(
          (
            bytes.loadUnaligned(fromByteOffset: start, as: CInt.self), bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self),
            String(decoding: name, as: UTF8.self)
          ))
        start += 16 + length
      }
    }
    return events
  }
}
