// The inotify watch for serial ports, on files in temporary directories.

import Foundation
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite("Watching for serial ports") @Loop struct PathWatcherTests {
  private final class Client {
    var count = 0
  }

  /// A directory, a watch for the path below it, and its client.
  private func watch(_ path: String, in directory: String) -> (PathWatcher, Client) {
    let (watcher, client) = (PathWatcher(), Client())
    watcher.watch("\(directory)/\(path)", for: client) { client.count += 1 }
    return (watcher, client)
  }

  private func makeDirectory(_ path: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  private func makeFile(_ path: String, mode: mode_t = 0o600) {
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode))
  }

  @Test func `a file that appears, comes back or changes its permissions is reported`() async {
    let directory = temporaryDirectory()
    let (watcher, client) = watch("ttyUSB0", in: directory)
    #expect(watcher.watched == [directory])
    makeFile("\(directory)/ttyUSB0")
    #expect(await until { client.count == 1 })
    chmod("\(directory)/ttyUSB0", 0o660)
    #expect(await until { client.count == 2 })
    unlink("\(directory)/ttyUSB0")
    makeFile("\(directory)/ttyACM0")
    rename("\(directory)/ttyACM0", "\(directory)/ttyUSB0")
    #expect(await until { client.count == 3 })
    watcher.stop(for: client)
    #expect(watcher.watched.isEmpty)
  }

  @Test func `other files and deletions are not reported`() async {
    let directory = temporaryDirectory()
    makeFile("\(directory)/ttyUSB0")
    let (watcher, client) = watch("ttyUSB0", in: directory)
    let other = Client()
    watcher.watch("\(directory)/last", for: other) { other.count += 1 }
    makeFile("\(directory)/ttyUSB1")
    unlink("\(directory)/ttyUSB0")
    // Events are delivered in order.
    makeFile("\(directory)/last")
    #expect(await until { other.count == 1 })
    #expect(client.count == 0)
  }

  @Test func `the directory may be missing, be removed and come back`() async throws {
    let directory = temporaryDirectory()
    let ports = "\(directory)/serial/by-id"
    let (watcher, client) = watch("serial/by-id/usb-FTDI", in: directory)
    #expect(watcher.watched == [directory])
    for round in 1...3 {
      try makeDirectory(ports)
      #expect(await until { watcher.watched == [ports] })
      makeFile("\(ports)/usb-FTDI")
      #expect(await until { client.count == round })
      try FileManager.default.removeItem(atPath: "\(directory)/serial")
      #expect(await until { watcher.watched == [directory] })
    }
    // All at once.
    try makeDirectory(ports)
    makeFile("\(ports)/usb-FTDI")
    #expect(await until { client.count >= 4 })
    // The directory is replaced by another one with the port.
    try makeDirectory("\(directory)/new/by-id")
    makeFile("\(directory)/new/by-id/usb-FTDI")
    #expect(await until { watcher.watched == [ports] })
    let before = client.count
    try FileManager.default.removeItem(atPath: "\(directory)/serial")
    rename("\(directory)/new", "\(directory)/serial")
    #expect(await until { client.count > before && watcher.watched == [ports] })
  }

  @Test func `the permissions of a symbolic link's target are reported`() async throws {
    let directory = temporaryDirectory()
    try makeDirectory("\(directory)/serial/by-id")
    makeFile("\(directory)/ttyUSB0", mode: 0)
    let (watcher, client) = watch("serial/by-id/usb-FTDI", in: directory)
    #expect(symlink("../../ttyUSB0", "\(directory)/serial/by-id/usb-FTDI") == 0)
    #expect(await until { client.count > 0 && watcher.watched == [directory, "\(directory)/serial/by-id"] })
    let before = client.count
    chmod("\(directory)/ttyUSB0", 0o660)
    #expect(await until { client.count > before })
  }

  @Test func `a symbolic link to itself is harmless`() {
    let directory = temporaryDirectory()
    symlink("loop", "\(directory)/loop")
    #expect(PathWatcher.places(of: "\(directory)/loop") == [directory: ["loop"]])
  }

  @Test func `events are parsed, and cut ones are ignored`() {
    let name: [UInt8] = Array("ttyUSB0".utf8) + [UInt8](repeating: 0, count: 9)
    let event: [UInt8] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0] + name
    let events = PathWatcher.events(event + [2, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    #expect(events.map(\.watch) == [1, 2] && events.map(\.mask) == [0x100, 0x400] && events.map(\.name) == ["ttyUSB0", ""])
    for length in 0..<event.count { #expect(PathWatcher.events(Array(event.prefix(length))).isEmpty) }
  }

  @Test func `a link is opened at once when its port appears, in spite of its backoff`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    defer { [controller, follower].forEach { close($0) } }
    let alias = temporaryDirectory() + "/ttyUSB0"
    let device = device(Probe(), links: [(.main, try LinkURL("serial:\(alias)"))])
    // Every failure doubles the delay; the fifth one is followed by 16 s, more than `until` waits.
    device.open(restored: [:])
    for _ in 0..<4 {
      #expect(await until { device.ports[0].nextAttempt != nil })
      device.ports[0].open()
    }
    #expect(await until { (device.ports[0].nextAttempt ?? 0) > Clock.wall() + 10_000_000 })
    #expect(symlink(path, alias) == 0)
    #expect(await until { device.ports[0].isUp })
    #expect(PathWatcher.shared.watched.allSatisfy { !alias.hasPrefix($0) })
    device.disconnect()
  }
}
