// Receives notifications from a connected peer and writes to its characteristics. Writes are sent one at a time, each as exactly one
// GATT write. If BlueZ provides a socket for a characteristic, the data of that characteristic bypasses D-Bus.

import DBus
import Protocols

@Loop final class GATTChannel {
  private let choice: GATTChoice
  private let description: PeripheralDescription
  private let blueZ: BlueZ
  private let received: @Loop ([UInt8]) -> Void
  private let failed: @Loop (String) -> Void
  private(set) var mtu: Int
  private var notifyPipe: PacketPipe?
  private var writePipe: PacketPipe?
  private var queue: [(bytes: [UInt8], done: (@Loop (String?) -> Void)?)] = []
  private var isWriting = false
  private var isClosed = false

  private static let minMTU = 23
  private static let mtus = 23...517
  /// The maximum length of a value (Core specification 3.F.3.2.9). BlueZ splits an acknowledged write by itself.
  private static let maxValueLength = 512
  private static let timeoutMilliseconds = 10_000

  /// `received` gets every notification. `failed` is called at most once, with the reason.
  init(
    _ choice: GATTChoice, _ description: PeripheralDescription, _ blueZ: BlueZ, received: @escaping @Loop ([UInt8]) -> Void,
    failed: @escaping @Loop (String) -> Void
  ) {
    self.choice = choice
    self.description = description
    self.blueZ = blueZ
    self.received = received
    self.failed = failed
    mtu = choice.write?.mtu ?? choice.notify?.mtu ?? Self.minMTU
    if !Self.mtus.contains(mtu) { mtu = Self.minMTU }
  }

  /// Whether the characteristics still exist.
  var isAvailable: Bool { [choice.notify, choice.write].compactMap(\.self).allSatisfy { blueZ.objects[$0.path] != nil } }

  /// The maximum size of a message in bytes; nil if messages may be split anywhere.
  var maxMessageSize: Int? { choice.write == nil ? 0 : description.isStream ? nil : choice.isAcknowledged ? Self.maxValueLength : mtu - 3 }

  var details: [String: String] {
    [
      "mtu": "\(mtu)",
      "profile": [choice.write?.service ?? choice.notify?.service, choice.notify?.uuid, choice.write?.uuid]
        .compactMap { $0?.description }.joined(separator: "/"),
      "write": choice.write == nil
        ? "never" : choice.isAcknowledged ? "with response" : writePipe != nil ? "without response, by descriptor" : "without response",
      "notify": choice.notify == nil ? "never" : notifyPipe != nil ? "by descriptor" : "by signal",
    ]
  }

  // MARK: Subscribing

  /// Subscribes to notifications and acquires the write descriptor.
  func open(then ready: @escaping @Loop @Sendable () -> Void) {
    guard let notify = choice.notify else { return acquireWrite(ready) }
    let next: @Loop @Sendable () -> Void = { [weak self] in self?.acquireWrite(ready) }
    guard notify.supportsAcquireNotify, notify.flags.contains("notify") else { return startNotify(notify, then: next) }
    call(notify, "AcquireNotify", [.properties([:])]) { [weak self] result in
      guard let self else { return }
      guard case .success(let message) = result, let pipe = openPipe(message, ended: { $0.notificationsEnded(notify) }) else {
        return startNotify(notify, then: next)
      }
      notifyPipe = pipe
      next()
    }
  }

  private func startNotify(_ notify: Characteristic, then next: @escaping @Loop @Sendable () -> Void) {
    blueZ.notificationHandlers[notify.path] = { [weak self] in self?.received($0) }
    call(notify, "StartNotify") { [weak self] result in
      guard case .failure(let error) = result else { return next() }
      self?.failed("cannot subscribe to \(notify.uuid): \(error.message)")
    }
  }

  private func acquireWrite(_ ready: @escaping @Loop @Sendable () -> Void) {
    guard let write = choice.write, !choice.isAcknowledged, write.supportsAcquireWrite else { return ready() }
    call(write, "AcquireWrite", [.properties([:])]) { [weak self] result in
      // If BlueZ provides no socket, messages are written with WriteValue.
      if case .success(let message) = result { self?.writePipe = self?.openPipe(message, ended: { $0.writePipe = nil }) }
      ready()
    }
  }

  /// Opens the socket that an Acquire call returned, and records its MTU.
  private func openPipe(_ message: DBusMessage, ended: @escaping @Loop (GATTChannel) -> Void) -> PacketPipe? {
    guard message.body.count == 2, let descriptor = message.body[0].descriptor else { return nil }
    if let size = message.body[1].int, Self.mtus.contains(size) { mtu = size }
    return PacketPipe.open(descriptor) { [weak self] in
      self?.received($0)
    } ended: { [weak self] in
      if let self { ended(self) }
    }
  }

  /// Handles the end of the notification socket: subscribes with StartNotify instead. The peer may still be connected, because an empty
  /// notification looks like the end of the socket.
  private func notificationsEnded(_ notify: Characteristic) {
    notifyPipe = nil
    let retry = Timer { [weak self] _ in
      if let self, !isClosed { startNotify(notify, then: {}) }
    }
    retry.set(Clock.monotonic() + 50 * .millisecond)
  }

  /// Calls a method of a characteristic. The reply is ignored once the channel is closed.
  private func call(
    _ characteristic: Characteristic, _ member: String, _ body: [DBusValue] = [],
    then: @escaping @Loop @Sendable (Result<DBusMessage, DBusError>) -> Void
  ) {
    blueZ.call(characteristic.path, Characteristic.interface, member, body, milliseconds: Self.timeoutMilliseconds) { [weak self] result in
      if let self, !isClosed { then(result) }
    }
  }

  // MARK: Writing

  /// The socket for writes, if BlueZ provided one.
  var descriptor: CInt? { writePipe?.descriptor }

  /// Writes a message. `done` gets the error message, or nil once BlueZ has accepted the write. If `done` is nil, an error is reported
  /// to `failed`.
  func send(_ bytes: [UInt8], done: (@Loop (String?) -> Void)? = nil) {
    if let maxMessageSize, bytes.count > maxMessageSize {
      let message =
        choice.write == nil ? "the peer is read-only" : "message of \(bytes.count) bytes exceeds the maximum of \(maxMessageSize)"
      return Loop.post { [weak self] in if let done { done(message) } else { self?.failed(message) } }
    }
    var rest = bytes[...]
    repeat {
      let piece = description.isStream ? rest.prefix(mtu - 3) : rest
      rest = rest.dropFirst(piece.count)
      queue.append((Array(piece), rest.isEmpty ? done : nil))
    } while !rest.isEmpty
    if !isWriting { writeNext() }
  }

  private func writeNext() {
    guard !queue.isEmpty, !isClosed, let write = choice.write else { return }
    isWriting = true
    let (bytes, done) = queue.removeFirst()
    if let writePipe { return writePipe.write(bytes) { [weak self] in self?.writeEnded(done, $0) } }
    let options = DBusValue.properties(["type": .string(choice.isAcknowledged ? "request" : "command")])
    call(write, "WriteValue", [.bytes(bytes), options]) { [weak self] result in
      if case .failure(let error) = result { self?.writeEnded(done, error.message) } else { self?.writeEnded(done, nil) }
    }
  }

  private func writeEnded(_ done: (@Loop (String?) -> Void)?, _ failure: String?) {
    guard !isClosed else { return }
    isWriting = false
    if let done {
      done(failure)
    } else if let failure {
      return failed("cannot write to the peer: \(failure)")
    }
    if !isWriting { writeNext() }
  }

  /// Closes the channel without further callbacks.
  func close() {
    isClosed = true
    queue = []
    if let notify = choice.notify { blueZ.notificationHandlers[notify.path] = nil }
    notifyPipe?.close()
    writePipe?.close()
    (notifyPipe, writePipe) = (nil, nil)
  }
}
