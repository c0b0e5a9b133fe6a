// The send queue: order, what survives a lost connection and a restart, what is only on the disk, and what the broker rejects.

import Foundation
import Protocols
import SQLite
import Testing

@testable import vehicled_mqtt

@Suite("Send queue") struct SendQueueTests {
  private static let second: Int64 = 1_000_000

  private final class Directory {
    let path = NSTemporaryDirectory() + "queue-\(UUID().uuidString)"
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private func event(_ number: Int, _ topic: String = "vehicled/ev/event/a", size: Int = 4) -> OutgoingMessage {
    OutgoingMessage(topic, String(number).utf8 + [UInt8](repeating: 0x20, count: size))
  }

  private func batch(_ number: Int) -> OutgoingMessage { event(number, "fleet/v1/acme/van-17/b") }

  private func number(_ message: OutgoingMessage) -> Int? {
    Int(String(decoding: message.payload, as: UTF8.self).trimmingCharacters(in: .whitespaces))
  }

  private func state(_ topic: String, _ text: String, expiry: UInt32? = nil, isDurable: Bool = true) -> OutgoingMessage {
    .state(topic, text, expiry: expiry, isDurable: isDurable)
  }

  private func text(_ message: OutgoingMessage?) -> String? { message.map { String(decoding: $0.payload, as: UTF8.self) } }

  /// Runs the queue with a store as `Sender` does.
  private struct Rig {
    var queue: SendQueue
    let store: QueueStore
    var acknowledged: [QueuedMessage] = []

    init(_ path: String, maxSize: Int = 100_000_000) throws {
      store = try QueueStore(directory: path, maxAge: 1_000_000 * second, maxSize: maxSize)
      queue = SendQueue(try store.contents().queue)
    }

    @discardableResult mutating func update(at now: Int64 = 0) throws -> Int {
      let (new, old) = (queue.unstored(before: .max), acknowledged)
      queue.beginStoring(new)
      let dropped = try store.apply(.init(store: new, remove: old), at: .init(time: now, wall: 0))
      acknowledged = []
      queue.updated(stored: new, deleted: old)
      return dropped
    }

    mutating func load() throws {
      while let (kind, request) = queue.request {
        let (before, result) = (queue.events.count + queue.batches.count, try store.messages(kind, request))
        queue.loaded(kind, result, for: request)
        if queue.events.count + queue.batches.count == before, !result.isLast { continue }
      }
    }

    mutating func acknowledge(_ token: SendQueue.Token) { queue.acknowledge(token).map { acknowledged.append($0) } }

    /// Sends what is possible. `accepts` is whether the broker does.
    mutating func send(at now: Int64 = 0, accepts: (OutgoingMessage) -> Bool = { _ in true }) throws -> [OutgoingMessage] {
      var sent: [OutgoingMessage] = []
      try load()
      while let next = queue.nextInOrder(at: now) {
        if accepts(next.message) {
          sent.append(next.message)
          acknowledge(next.token)
        } else {
          queue.reject(next.token, until: now + 60 * second)
        }
        try load()
      }
      return sent
    }
  }

  // MARK: Order

  @Test func `events are sent in order, and again after a lost connection`() throws {
    var queue = SendQueue()
    for index in 0..<5 { queue.add(event(index), at: 0) }
    let tokens = (0..<3).compactMap { _ in queue.nextInOrder(at: 0) }
    try #require(tokens.count == 3)
    #expect(tokens.map { number($0.message) } == [0, 1, 2])
    _ = queue.acknowledge(tokens[1].token)
    queue.connectionEnded()
    let again = (0..<5).compactMap { _ in queue.nextInOrder(at: 0).flatMap { number($0.message) } }
    #expect(again == [0, 2, 3, 4] && queue.inFlightCount == 4)
  }

  @Test(arguments: [1, 50]) func `thousands of events are on the disk only, and are sent in order`(interval: Int) throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<3000 {
      rig.queue.add(event(index, size: 1000), at: 0)
      if index % interval == 0 { try rig.update() }
    }
    try rig.update()
    #expect(rig.queue.events.count < 300)
    for index in 3000..<3010 { rig.queue.add(event(index), at: 0) }
    #expect(try rig.send().map(number) == Array(0..<3010))
    try rig.update()
    #expect(try rig.store.contents().queue.hasEvents == false)
  }

  @Test func `events that arrive during every store neither fill the memory nor are lost`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    var count = 0
    func add(_ number: Int, to rig: inout Rig) {
      for _ in 0..<number {
        count += 1
        rig.queue.add(event(count, size: 10_000), at: 0)
      }
    }
    for _ in 0..<20 {
      add(40, to: &rig)
      let entries = rig.queue.unstored(before: .max)
      rig.queue.beginStoring(entries)
      _ = try rig.store.apply(.init(store: entries), at: .init(time: 0, wall: 0))
      add(60, to: &rig)
      rig.queue.updated(stored: entries, deleted: [])
    }
    #expect(count == 2000 && rig.queue.events.lostCount == 0 && rig.queue.events.count < 100)
    #expect(try rig.send().map(number) == Array(1...count) && rig.queue.events.count == 0)
  }

  @Test func `without a disk the oldest events are lost at last, and the others are sent`() {
    var queue = SendQueue()
    for index in 0..<20 { queue.add(event(index, size: 1 << 20), at: 0) }
    #expect(queue.events.lostCount > 10 && queue.events.count + queue.events.lostCount == 20)
    #expect(queue.nextInOrder(at: 0).flatMap { number($0.message) } == queue.events.lostCount)
  }

  @Test func `what cannot be read from the disk does not hold up what is in memory`() throws {
    var queue = SendQueue(.init(hasEvents: true, lastID: 7))
    queue.add(event(1), at: 0)
    #expect(queue.nextInOrder(at: 0) == nil)
    let request = try #require(queue.request)
    queue.loaded(.event, nil, for: request.request)
    #expect(queue.nextInOrder(at: 0).flatMap { number($0.message) } == 1 && queue.request == nil)
    // It is read again later.
    queue.updated(stored: [], deleted: [])
    #expect(queue.request == nil)
    queue.retryLoading()
    #expect(queue.request?.request.position == 0)
  }

  // MARK: Rejections

  @Test func `a rejected topic waits in order while others are sent`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<600 { rig.queue.add(event(index, "vehicled/ev/event/\(index % 3)", size: 1000), at: 0) }
    let sent = try rig.send { $0.topic != "vehicled/ev/event/0" }
    #expect(sent.map(number) == (0..<600).filter { $0 % 3 != 0 })
    for index in 600..<603 { rig.queue.add(event(index, "vehicled/ev/event/\(index % 3)"), at: 0) }
    try rig.update()
    #expect(rig.queue.events.count == 3, "the rejected ones are only on the disk, but for the oldest")
    #expect(try rig.send().map(number) == [601, 602])
    // Only the oldest is tried again; when it is accepted, the others follow.
    var tried: [Int?] = []
    #expect(
      try rig.send(at: 61 * Self.second) {
        tried.append(number($0))
        return false
      }.isEmpty)
    #expect(tried == [0])
    #expect(try rig.send(at: 122 * Self.second).map(number) == stride(from: 0, through: 600, by: 3).map { $0 })
    try rig.update()
    #expect(try rig.store.contents().queue.hasEvents == false && rig.queue.events.count == 0)
  }

  @Test func `rejected messages that are in flight together return to their places`() throws {
    var queue = SendQueue()
    for index in 0..<4 { queue.add(event(index), at: 0) }
    let tokens = (0..<3).compactMap { _ in queue.nextInOrder(at: 0)?.token }
    for token in [tokens[1], tokens[0], tokens[2]] { queue.reject(token, until: 10) }
    #expect(queue.nextInOrder(at: 9) == nil && queue.events.count == 4)
    let oldest = queue.nextInOrder(at: 10)
    #expect(oldest.flatMap { number($0.message) } == 0)
    #expect(queue.nextInOrder(at: 10) == nil)
    _ = queue.acknowledge(try #require(oldest).token)
    let request = try #require(queue.request)
    queue.loaded(request.kind, ([], true), for: request.request)
    #expect((0..<4).compactMap { _ in queue.nextInOrder(at: 10).flatMap { number($0.message) } } == [1, 2, 3])
  }

  @Test func `batches without a subscriber do not hold up events`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<10 { rig.queue.add(batch(index), at: 0) }
    try rig.update()
    #expect(try rig.send { !Topics.isBatch($0.topic) }.isEmpty)
    rig.queue.add(event(100), at: 0)
    #expect(try rig.send { !Topics.isBatch($0.topic) }.map(number) == [100])
    rig.queue.connectionEnded()
    #expect(try rig.send().map(number) == Array(0..<10))
  }

  @Test func `a message that is too large waits for the next connection, and the others are sent`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<3 { rig.queue.add(event(index), at: 0) }
    let first = rig.queue.nextInOrder(at: 0)
    rig.queue.setAside(try #require(first).token)
    #expect(try rig.send().map(number) == [1, 2])
    try rig.update()
    #expect(try rig.send().isEmpty && rig.store.contents().queue.hasEvents)
    rig.queue.connectionEnded()
    #expect(try rig.send().map(number) == [0])
  }

  @Test func `rejected states wait, and a newer one is sent at once`() throws {
    var queue = SendQueue()
    queue.add(state("a", "1"), at: 0)
    queue.add(state("b", "2"), at: 0)
    while let next = queue.nextState(at: 0) { queue.reject(next.token, until: 0) }
    #expect(queue.states.count == 2)
    queue.add(state("a", "3"), at: 0)
    let newer = queue.nextState(at: 0)
    #expect(text(newer?.message) == "3" && queue.nextState(at: 0) == nil)
    queue.retryStates()
    #expect(text(queue.nextState(at: 0)?.message) == "2" && queue.nextState(at: 0) == nil)
  }

  @Test func `of the rejections, the journal has one of a kind, and the state one with the number of others`() {
    var rejections = Rejections()
    #expect(rejections.summary == nil)
    #expect(rejections.add("b", "b is rejected", kind: "135") && !rejections.add("a", "a is rejected", kind: "135"))
    #expect(rejections.summary == "a is rejected (and 1 more)")
    #expect(!rejections.accepted("a") && rejections.summary == "b is rejected" && !rejections.accepted("c"))
    #expect(rejections.accepted("b") && rejections.summary == nil && rejections.add("b", "again", kind: "135"))
  }

  // MARK: States

  @Test func `of the states of a topic only the newest is sent`() throws {
    var queue = SendQueue()
    queue.add(state("a", "1"), at: 0)
    queue.add(state("b", "2"), at: 0)
    queue.add(state("a", "3"), at: 0)
    let initial = queue.nextState(at: 0)
    let first = try #require(initial)
    #expect(text(first.message) == "3")
    // A newer one that arrives while the old one is in flight is sent as well, and the acknowledgement of the old one does not remove it.
    queue.add(state("a", "4"), at: 0)
    #expect(queue.nextState(at: 0)?.message.topic == "b")
    let newer = queue.nextState(at: 0)
    let third = try #require(newer)
    #expect(text(third.message) == "4")
    #expect(queue.acknowledge(first.token) == nil && queue.states.count == 2)
    _ = queue.acknowledge(third.token)
    #expect(queue.states.count == 1 && queue.nextState(at: 0) == nil)
    queue.connectionEnded()
    #expect(queue.nextState(at: 0)?.message.topic == "b")
  }

  @Test func `an expired state is not sent, and the rest of the expiry is`() {
    var queue = SendQueue()
    queue.add(state("a", "1", expiry: 10), at: 0)
    queue.add(state("b", "2", expiry: 10), at: 5 * Self.second)
    queue.add(state("c", "3"), at: 0)
    let sent = [queue.nextState(at: 12 * Self.second), queue.nextState(at: 12 * Self.second)].compactMap { $0?.message }
    #expect(sent.map(\.topic) == ["b", "c"] && sent.map(\.expiry) == [3, nil])
    #expect(queue.nextState(at: 12 * Self.second) == nil)
  }

  @Test func `only states that keep their meaning are stored`() {
    var queue = SendQueue()
    queue.add(state("vehicled/ev/odometer", "1"), at: 0)
    queue.add(state("vehicled/ev/link", "up", isDurable: false), at: 0)
    #expect(queue.unstored(before: .max).map(\.message.topic) == ["vehicled/ev/odometer"])
  }

  @Test func `stored states wait until their devices are known, and a newer one wins`() throws {
    let directory = Directory()
    do {
      var rig = try Rig(directory.path)
      for topic in ["a", "b", "c", "d"] { rig.queue.add(state(topic, "old"), at: 0) }
      try rig.update()
    }
    var rig = try Rig(directory.path)
    #expect(rig.queue.nextState(at: 0) == nil)
    rig.queue.add(state("a", "new"), at: 0)
    // The device of c is gone.
    rig.acknowledged += rig.queue.release { $0 != "c" }
    var sent: [String] = []
    while let next = rig.queue.nextState(at: 0) {
      sent.append("\(next.message.topic) \(text(next.message) ?? "")")
      if next.message.topic != "d" { rig.acknowledge(next.token) }
    }
    #expect(sent == ["a new", "b old", "d old"])
    try rig.update()
    #expect(try rig.store.contents().queue.states.map(\.message.topic) == ["d"])
  }

  @Test func `an acknowledged state deletes an older one that is stored`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    rig.queue.add(state("a", "old"), at: 1)
    try rig.update()
    rig.queue.add(state("a", "new"), at: 2)
    let next = rig.queue.nextState(at: 2)
    rig.acknowledge(try #require(next).token)
    try rig.update()
    #expect(try rig.store.contents().queue.states == [])
  }

  // MARK: The disk

  @Test func `what is acknowledged while it is being stored is deleted from the disk`() throws {
    var queue = SendQueue()
    queue.add(event(1), at: 0)
    queue.add(event(2), at: 0)
    queue.add(state("a", "1"), at: 0)
    let tokens = [queue.nextInOrder(at: 0)?.token, queue.nextInOrder(at: 0)?.token, queue.nextState(at: 0)?.token].compactMap { $0 }
    let entries = queue.unstored(before: .max)
    #expect(entries.count == 3)
    queue.beginStoring(entries)
    #expect(tokens.compactMap { queue.acknowledge($0)?.id } == [1, 2, 3])
    queue.updated(stored: entries, deleted: [])
    #expect(queue.events.count == 0 && queue.states.count == 0)
  }

  @Test func `everything that was stored survives a restart, and numbers do not repeat`() throws {
    let directory = Directory()
    do {
      var rig = try Rig(directory.path)
      for index in 0..<300 { rig.queue.add(event(index), at: 0) }
      for index in 0..<10 { rig.queue.add(batch(index), at: 0) }
      let first = rig.queue.nextInOrder(at: 0)
      try rig.update()
      rig.acknowledge(try #require(first).token)
      try rig.update()
    }
    var rig = try Rig(directory.path)
    rig.queue.add(event(300), at: 0)
    #expect(try rig.send().map(number) == Array(1...300) + Array(0..<10))
    try rig.update()
    rig.queue.add(event(301), at: 0)
    #expect(rig.queue.nextInOrder(at: 0)?.token == .event(312))
  }

  @Test func `large messages are read a few at a time`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<20 { rig.queue.add(event(index, size: 100_000), at: 0) }
    try rig.update()
    #expect(rig.queue.events.count < 5)
    let first = (0..<2).compactMap { _ in rig.queue.nextInOrder(at: 0) }
    #expect(first.compactMap { number($0.message) } == [0, 1])
    let request = rig.queue.request
    let (kind, next) = try #require(request)
    #expect(try rig.store.messages(kind, next).entries.count == 2)
    for (token, _) in first { rig.acknowledge(token) }
    #expect(try rig.send().map(number) == Array(2..<20))
  }

  @Test func `the topics and properties that the broker retains are stored`() throws {
    let directory = Directory()
    let store = try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 20)
    for retained: Set in [["ev.odometer", "ev.state-of-charge"], ["ev.odometer"]] {
      _ = try store.apply(.init(retained: retained), at: .init(time: 0, wall: 0))
      _ = try store.apply(.init(), at: .init(time: 0, wall: 0))
      #expect(try store.contents().retained == retained)
    }
    _ = try store.apply(.init(topics: ["a": true, "b": true]), at: .init(time: 5, wall: 7))
    _ = try store.apply(.init(topics: ["a": true, "b": false, "c": false]), at: .init(time: 6, wall: 3))
    let contents = try store.contents()
    #expect(contents.topics == ["a"] && contents.mark == .init(time: 6, wall: 3))
  }

  @Test func `the file shrinks after a backlog was sent`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<10_000 { rig.queue.add(event(index, size: 1000), at: 0) }
    try rig.update()
    _ = try rig.send()
    for _ in 0..<10 { try rig.update() }
    let file = try FileManager.default.attributesOfItem(atPath: directory.path + "/queue.db")
    #expect(try #require(file[.size] as? Int) < 6_000_000)
  }

  @Test func `the oldest messages are dropped when the queue exceeds its age or size`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path, maxSize: 400_000)
    for index in 0..<1000 { rig.queue.add(index % 2 == 0 ? event(index, size: 1000) : batch(index), at: 0) }
    #expect(try rig.update() > 200)
    #expect(try rig.store.size() <= 400_000)
    var other = try Rig(Directory().path)
    other.queue.add(event(0), at: 0)
    other.queue.add(batch(1), at: 0)
    other.queue.add(event(2), at: 2_000_000 * Self.second)
    #expect(try other.update(at: 2_000_000 * Self.second) == 2)
  }

  @Test func `a clock that is set discards nothing, and the time between two runs counts`() {
    let day: Int64 = 86_400 * Self.second
    let first = QueueClock(after: .init(time: 0, wall: 0), boot: 500, wall: 20_000 * day)
    #expect(first.time(boot: 500) == 0 && first.time(boot: 700) == 200)
    #expect(QueueClock(after: .init(time: 200, wall: 100 * day), boot: 5, wall: 103 * day).time(boot: 6) == 201 + 3 * day)
    #expect(QueueClock(after: .init(time: 200, wall: 100 * day), boot: 5, wall: 0).time(boot: 5) == 200, "without a battery-backed clock")
    #expect(QueueClock(after: .init(time: 200, wall: 100 * day), boot: 5, wall: 99_999 * day).time(boot: 5) == 200 + 7 * day)
    #expect(QueueClock(after: .init(time: 200, wall: .min), boot: 5, wall: .max).time(boot: 5) <= 200 + 7 * day)
  }

  @Test func `after the loss of the disk, what is in memory is stored again`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<10 { rig.queue.add(event(index, "vehicled/ev/event/\(index % 2)"), at: 0) }
    rig.queue.add(state("a", "1"), at: 0)
    try rig.update()
    _ = try rig.send { $0.topic != "vehicled/ev/event/0" }
    rig.acknowledged = []
    try rig.store.replace()
    rig.queue.storeLost()
    rig.queue.connectionEnded()
    try rig.update()
    #expect(try rig.store.contents().queue.states.count == 1)
    #expect(try rig.send().map(number) == [0], "the others were only on the disk")
  }

  @Test func `an age that exceeds the limit does not read the others`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<10 { rig.queue.add(event(index), at: Int64(index) * 200_000 * Self.second) }
    #expect(try rig.update(at: 1_300_000 * Self.second) == 2)
    rig.queue.add(batch(0), at: 9_000_000 * Self.second)
    #expect(try rig.update(at: 9_000_000 * Self.second) == 8)
  }

  @Test func `at the end, only the states that keep their meaning stay`() throws {
    var queue = SendQueue()
    queue.add(state("a", "1", isDurable: false), at: 0)
    queue.add(state("b", "2"), at: 0)
    queue.add(state("c", "3", isDurable: false), at: 0)
    #expect(queue.nextState(at: 0)?.message.topic == "a")
    queue.discardPendingStates()
    queue.add(state("status", "offline", isDurable: false), at: 0)
    #expect(queue.nextState(at: 0)?.message.topic == "status" && queue.nextState(at: 0) == nil)
    #expect(queue.unstored(before: .max).map(\.message.topic) == ["b"] && queue.states.count == 3)
  }

  @Test func `a damaged file is moved away, and one of another program is not touched`() throws {
    let directory = Directory()
    let path = directory.path + "/queue.db"
    try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    try Data(repeating: 0x55, count: 8192).write(to: URL(fileURLWithPath: path))
    do {
      let store = try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 20)
      #expect(store.damagedPath == path + ".damaged" && store.damage?.description.contains("is damaged") == true)
      #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".damaged")) == Data(repeating: 0x55, count: 8192))
    }
    #expect(try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 20).damage == nil)
    // Numbers that the queue cannot have written, which would overflow.
    do {
      let store = try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 20)
      _ = try store.apply(.init(), at: .init(time: .max, wall: 0))
    }
    #expect(try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 20).damage?.kind == .damaged)
    let other = Directory()
    try FileManager.default.createDirectory(atPath: other.path, withIntermediateDirectories: true)
    let format = Database.Format(application: 7, version: 2, schema: "CREATE TABLE a (b INTEGER)", owner: "a test")
    _ = try Database(other.path + "/queue.db", format, writable: true, settings: "")
    #expect { _ = try QueueStore(directory: other.path, maxAge: .max, maxSize: 1) } throws: { ($0 as? StoreError)?.kind == .foreign }
  }
}
