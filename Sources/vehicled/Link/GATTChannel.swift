// The characteristics of a connected peer, taken and used: notifications come in, writes go out one after the other, each
// exactly one GATT write. Where BlueZ hands out sockets for them no byte passes through the bus.

import Bus
import Protocols

@Loop final class GATTChannel {
  private let choice: GATTChoice
  private let role: GATTRole
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
  /// The longest value of a characteristic (Core specification 3.F.3.2.9): BlueZ cuts an acknowledged write by itself.
  private static let maxValueLength = 512
  private static let timeout = 10_000

  /// `failed` is told, at most once, why the channel is of no use; `received` of every notification.
  init(
    _ choice: GATTChoice, _ role: GATTRole, _ blueZ: BlueZ, received: @escaping @Loop ([UInt8]) -> Void,
    failed: @escaping @Loop (String) -> Void
  ) {
    self.choice = choice
    self.role = role
    self.blueZ = blueZ
    self.received = received
    self.failed = failed
    mtu = choice.write?.mtu ?? choice.notify?.mtu ?? Self.minMTU
    if !Self.mtus.contains(mtu) { mtu = Self.minMTU }
  }

  /// Whether the characteristics are there still.
  var isThere: Bool { [choice.notify, choice.write].compactMap(\.self).allSatisfy { blueZ.objects[$0.path] != nil } }

  /// The most that one message carries; nil where messages are cut at will.
  var maximum: Int? { choice.write == nil ? 0 : role.isStream ? nil : choice.isAcknowledged ? Self.maxValueLength : mtu - 3 }

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

  // MARK: Taking

  /// Subscribes, and takes the way to write.
  func open(then ready: @escaping @Loop @Sendable () -> Void) {
    guard let notify = choice.notify else { return takeWriting(ready) }
    let next: @Loop @Sendable () -> Void = { [weak self] in self?.takeWriting(ready) }
    guard notify.offersNotifyDescriptor, notify.flags.contains("notify") else { return startNotify(notify, then: next) }
    call(notify, "AcquireNotify", [.properties([:])]) { [weak self] result in
      guard let self else { return }
      guard case .success(let message) = result, let pipe = pipe(message, ended: { $0.notificationsEnded(notify) }) else {
        return startNotify(notify, then: next)
      }
      notifyPipe = pipe
      next()
    }
  }

  private func startNotify(_ notify: Characteristic, then next: @escaping @Loop @Sendable () -> Void) {
    blueZ.notified[notify.path] = { [weak self] in self?.received($0) }
    call(notify, "StartNotify") { [weak self] result in
      guard case .failure(let error) = result else { return next() }
      self?.failed("it does not let us listen to \(notify.uuid): \(error.words)")
    }
  }

  private func takeWriting(_ ready: @escaping @Loop @Sendable () -> Void) {
    guard let write = choice.write, !choice.isAcknowledged, write.offersWriteDescriptor else { return ready() }
    call(write, "AcquireWrite", [.properties([:])]) { [weak self] result in
      // Where BlueZ does not hand one out, WriteValue does the same.
      if case .success(let message) = result { self?.writePipe = self?.pipe(message, ended: { $0.writePipe = nil }) }
      ready()
    }
  }

  /// The socket of an Acquire call, and the MTU that came with it.
  private func pipe(_ message: BusMessage, ended: @escaping @Loop (GATTChannel) -> Void) -> PacketPipe? {
    guard message.body.count == 2, let descriptor = message.body[0].descriptor else { return nil }
    if let size = message.body[1].int, Self.mtus.contains(size) { mtu = size }
    return PacketPipe.open(descriptor) { [weak self] in
      self?.received($0)
    } ended: { [weak self] in
      if let self { ended(self) }
    }
  }

  /// The socket has ended while the peer may be there still: a notification without bytes looks the same.
  private func notificationsEnded(_ notify: Characteristic) {
    notifyPipe = nil
    let later = Timer { [weak self] _ in
      if let self, !isClosed { startNotify(notify, then: {}) }
    }
    later.set(Clock.monotonic() + 50 * .millisecond)
  }

  /// Makes a call of a characteristic whose answer counts only while the channel is open.
  private func call(
    _ characteristic: Characteristic, _ member: String, _ body: [BusValue] = [],
    then: @escaping @Loop @Sendable (Result<BusMessage, BusError>) -> Void
  ) {
    blueZ.call(characteristic.path, Characteristic.interface, member, body, milliseconds: Self.timeout) { [weak self] result in
      if let self, !isClosed { then(result) }
    }
  }

  // MARK: Writing

  /// Where BlueZ gave a socket to write to.
  var descriptor: CInt? { writePipe?.descriptor }

  /// Writes a message; `done` is told the failure, or nil. Without `done` a failure is the channel's.
  func send(_ bytes: [UInt8], done: (@Loop (String?) -> Void)? = nil) {
    if let maximum, bytes.count > maximum {
      let words =
        choice.write == nil ? "it is only listened to: nothing can be written" : "\(bytes.count) bytes do not fit one write of \(maximum)"
      return Loop.post { [weak self] in if let done { done(words) } else { self?.failed(words) } }
    }
    var rest = bytes[...]
    repeat {
      let piece = role.isStream ? rest.prefix(mtu - 3) : rest
      rest = rest.dropFirst(piece.count)
      queue.append((Array(piece), rest.isEmpty ? done : nil))
    } while !rest.isEmpty
    if !isWriting { writeNext() }
  }

  private func writeNext() {
    guard !queue.isEmpty, !isClosed, let write = choice.write else { return }
    isWriting = true
    let (bytes, done) = queue.removeFirst()
    if let writePipe { return writePipe.write(bytes) { [weak self] in self?.wrote(done, $0) } }
    let options = BusValue.properties(["type": .string(choice.isAcknowledged ? "request" : "command")])
    call(write, "WriteValue", [.bytes(bytes), options]) { [weak self] result in
      if case .failure(let error) = result { self?.wrote(done, error.words) } else { self?.wrote(done, nil) }
    }
  }

  private func wrote(_ done: (@Loop (String?) -> Void)?, _ failure: String?) {
    guard !isClosed else { return }
    isWriting = false
    if let done {
      done(failure)
    } else if let failure {
      return failed("it does not take what is written: \(failure)")
    }
    if !isWriting { writeNext() }
  }

  /// Lets go of everything. Nothing is told afterwards.
  func close() {
    isClosed = true
    queue = []
    if let notify = choice.notify { blueZ.notified[notify.path] = nil }
    notifyPipe?.close()
    writePipe?.close()
    (notifyPipe, writePipe) = (nil, nil)
  }
}
