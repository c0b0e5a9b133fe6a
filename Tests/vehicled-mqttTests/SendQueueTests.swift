// The send queue: order, what survives a lost connection and a restart, and what is only on the disk.

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

  private func event(_ number: Int, size: Int = 4) -> OutgoingMessage {
    OutgoingMessage("fleet/b", String(number).utf8 + [UInt8](repeating: 0x20, count: size))
  }

  private func number(_ message: OutgoingMessage) -> Int? {
    Int(String(decoding: message.payload, as: UTF8.self).trimmingCharacters(in: .whitespaces))
  }

  private func state(_ topic: String, _ text: String, created: Int64 = 0, expiry: UInt32? = nil) -> QueuedMessage {
    QueuedMessage(created: created, message: .state(topic, text, expiry: expiry))
  }

  @Test func `events that arrive during every store neither fill the memory nor are lost`() throws {
    let directory = Directory()
    let store = try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 30)
    var queue = SendQueue()
    var count = 0
    func add(_ number: Int) {
      for _ in 0..<number {
        count += 1
        queue.add(event: event(count, size: 10_000), at: 0)
      }
    }
    for _ in 0..<20 {
      add(40)
      let entries = queue.unstored(before: .max)
      queue.beginStoring(entries)
      _ = try store.update(store: entries, remove: [], at: 0)
      add(60)
      queue.stored(entries)
    }
    #expect(count == 2000 && queue.lostCount == 0 && queue.eventCount == count && queue.diskCount > 1700)
    var sent: [Int?] = []
    while true {
      while let next = queue.nextEvent(at: 0) {
        sent.append(number(next.message))
        _ = queue.acknowledge(next.token)
      }
      guard let last = queue.wanted else { break }
      let (entries, rest) = try store.events(after: last)
      queue.loaded(entries, rest: rest)
    }
    #expect(sent == Array(1...count) && queue.eventCount == 0)
  }

  @Test func `what is acknowledged while it is being stored is deleted from the disk`() throws {
    var queue = SendQueue()
    queue.add(event: event(1), at: 0)
    queue.add(event: event(2), at: 0)
    queue.add(state: state("a", "1"))
    let tokens = [queue.nextEvent(at: 0)?.token, queue.nextEvent(at: 0)?.token, queue.nextState(at: 0)?.token].compactMap { $0 }
    let entries = queue.unstored(before: .max)
    #expect(entries.count == 3)
    queue.beginStoring(entries)
    #expect(tokens.prefix(2).compactMap { queue.acknowledge($0)?.id } == [1, 2])
    #expect(queue.acknowledge(tokens[2])?.message.topic == "a")
    queue.stored(entries)
    #expect(queue.eventCount == 0 && queue.stateCount == 0)
  }

  @Test func `an acknowledged state deletes an older one that is stored`() throws {
    let directory = Directory()
    let store = try QueueStore(directory: directory.path, maxAge: .max, maxSize: 1 << 20)
    var queue = SendQueue()
    queue.add(state: state("a", "old", created: 1))
    let stored = queue.unstored(before: .max)
    queue.beginStoring(stored)
    _ = try store.update(store: stored, remove: [], at: 1)
    queue.stored(stored)
    queue.add(state: state("a", "new", created: 2))
    let next = queue.nextState(at: 2)
    let removed = queue.acknowledge(try #require(next?.token))
    _ = try store.update(store: [], remove: [try #require(removed)], at: 2)
    #expect(try store.contents().states == [])
  }

  @Test func `a batch needs a subscriber, and is sent again together with those after it`() throws {
    var queue = SendQueue()
    let batches = (1...3).map { OutgoingMessage("fleet/v1/acme/van-17/b", [UInt8($0)]) }
    queue.add(event: OutgoingMessage("vehicled/ev/event/removed", []), at: 0)
    for batch in batches { queue.add(event: batch, at: 0) }
    let tokens = (0..<4).compactMap { _ in queue.nextEvent(at: 0)?.token }
    #expect(tokens.map { queue.needsSubscriber($0) } == [false, true, true, true])
    _ = queue.acknowledge(tokens[0])
    _ = queue.acknowledge(tokens[1])
    queue.postpone(tokens[2])
    #expect(queue.eventsInFlight == 0 && queue.eventCount == 2)
    #expect(queue.acknowledge(tokens[3]) == nil, "an acknowledgement that arrives later does not change the order")
    #expect(queue.nextEvent(at: 0)?.message == batches[1] && queue.nextEvent(at: 0)?.message == batches[2])
  }

  @Test func `of the states of a topic only the newest is sent`() throws {
    var queue = SendQueue()
    queue.add(state: state("a", "1"))
    queue.add(state: state("b", "2"))
    queue.add(state: state("a", "3"))
    let initial = queue.nextState(at: 0)
    let first = try #require(initial)
    #expect(first.message.payload == Array("3".utf8))
    // A newer one that arrives while the old one is in flight is sent as well, and the acknowledgement of the old one does not remove it.
    queue.add(state: state("a", "4"))
    #expect(queue.nextState(at: 0)?.message.topic == "b")
    let newer = queue.nextState(at: 0)
    let third = try #require(newer)
    #expect(third.message.payload == Array("4".utf8))
    #expect(queue.acknowledge(first.token) == nil && queue.stateCount == 2)
    _ = queue.acknowledge(third.token)
    #expect(queue.stateCount == 1 && queue.nextState(at: 0) == nil)
    queue.connectionEnded()
    #expect(queue.nextState(at: 0)?.message.topic == "b")
  }

  @Test func `an expired state is not sent, and the rest of the expiry is`() {
    var queue = SendQueue()
    queue.add(state: state("a", "1", created: 0, expiry: 10))
    queue.add(state: state("b", "2", created: 5 * Self.second, expiry: 10))
    queue.add(state: state("c", "3", created: 0))
    let sent = [queue.nextState(at: 12 * Self.second), queue.nextState(at: 12 * Self.second)].compactMap { $0?.message }
    #expect(sent.map(\.topic) == ["b", "c"] && sent.map(\.expiry) == [3, nil])
    #expect(queue.nextState(at: 12 * Self.second) == nil)
  }

  @Test func `events are sent in order, and again after a lost connection`() throws {
    var queue = SendQueue()
    for index in 0..<5 { queue.add(event: event(index), at: 0) }
    let tokens = (0..<3).compactMap { _ in queue.nextEvent(at: 0) }
    try #require(tokens.count == 3)
    #expect(tokens.map { number($0.message) } == [0, 1, 2])
    _ = queue.acknowledge(tokens[1].token)
    queue.connectionEnded()
    let again = (0..<5).compactMap { _ in queue.nextEvent(at: 0).flatMap { number($0.message) } }
    #expect(again == [0, 2, 3, 4] && queue.eventsInFlight == 4)
    // A rejected one returns to the queue together with those after it.
    queue.postpone(.event(3))
    #expect(queue.eventsInFlight == 1 && queue.nextEvent(at: 0).flatMap { number($0.message) } == 2)
  }

  /// Runs the queue with a store as `Sender` does.
  private struct Rig {
    var queue: SendQueue
    let store: QueueStore
    var acknowledged: [QueuedMessage] = []

    init(_ path: String, maxSize: Int = 100_000_000) throws {
      store = try QueueStore(directory: path, maxAge: 1_000_000 * second, maxSize: maxSize)
      let contents = try store.contents()
      queue = SendQueue(states: contents.states, diskCount: contents.eventCount, last: contents.lastID)
    }

    @discardableResult mutating func update(at now: Int64 = 0, before time: Int64 = .max) throws -> Int {
      let new = queue.unstored(before: time)
      let dropped = try store.update(store: new, remove: acknowledged, at: now)
      acknowledged = []
      queue.stored(new)
      return dropped
    }

    mutating func load() throws {
      guard let wanted = queue.wanted else { return }
      let loaded = try store.events(after: wanted)
      queue.loaded(loaded.entries, rest: loaded.rest)
    }

    /// Sends and acknowledges everything.
    mutating func drain() throws -> [OutgoingMessage] {
      var sent: [OutgoingMessage] = []
      while queue.eventCount > 0 {
        try load()
        while let next = queue.nextEvent(at: 0) {
          sent.append(next.message)
          if let stored = queue.acknowledge(next.token) { acknowledged.append(stored) }
        }
      }
      return sent
    }
  }

  @Test func `thousands of events are on the disk only, and are sent in order`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<3000 {
      rig.queue.add(event: event(index, size: 1000), at: 0)
      if index % 100 == 0 { try rig.update() }
    }
    try rig.update()
    #expect(rig.queue.diskCount > 2000)
    for index in 3000..<3010 { rig.queue.add(event: event(index), at: 0) }
    #expect(try rig.drain().map(number) == Array(0..<3010))
    try rig.update()
    #expect(try rig.store.contents().eventCount == 0)
  }

  @Test func `everything that was stored survives a restart, and numbers do not repeat`() throws {
    let directory = Directory()
    do {
      var rig = try Rig(directory.path)
      for index in 0..<300 { rig.queue.add(event: event(index), at: 0) }
      rig.queue.add(state: state("a", "1"))
      rig.queue.add(state: state("b", "2"))
      let first = rig.queue.nextEvent(at: 0)
      let next = try #require(first)
      try rig.update()
      rig.acknowledged += [rig.queue.acknowledge(next.token)].compactMap { $0 }
      rig.queue.add(state: state("a", "3", created: 1))
      try rig.update()
    }
    var rig = try Rig(directory.path)
    #expect(rig.queue.stateCount == 2)
    let states = (0..<2).compactMap { _ in rig.queue.nextState(at: 0)?.message.payload }
    #expect(Set(states) == [Array("3".utf8), Array("2".utf8)])
    rig.queue.add(event: event(300), at: 0)
    #expect(try rig.drain().map(number) == Array(1...300))
    try rig.update()
    rig.queue.add(event: event(301), at: 0)
    #expect(rig.queue.nextEvent(at: 0)?.token == .event(302))
  }

  @Test func `the file shrinks after a backlog was sent`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path)
    for index in 0..<10_000 { rig.queue.add(event: event(index, size: 1000), at: 0) }
    try rig.update()
    _ = try rig.drain()
    for _ in 0..<10 { try rig.update() }
    let file = try FileManager.default.attributesOfItem(atPath: directory.path + "/queue.db")
    #expect(try #require(file[.size] as? Int) < 6_000_000)
  }

  @Test func `the oldest events are dropped when the queue exceeds its age or size`() throws {
    let directory = Directory()
    var rig = try Rig(directory.path, maxSize: 400_000)
    for index in 0..<1000 { rig.queue.add(event: event(index, size: 1000), at: 0) }
    #expect(try rig.update() > 400)
    #expect(try rig.store.size() <= 400_000)
    var other = try Rig(Directory().path)
    other.queue.add(event: event(0), at: 0)
    other.queue.add(event: event(1), at: 2_000_000 * Self.second)
    #expect(try other.update(at: 2_000_000 * Self.second) == 1)
  }

  @Test func `without a disk the oldest events are lost at last`() {
    var queue = SendQueue()
    for index in 0..<40 { queue.add(event: event(index, size: 1 << 20), at: 0) }
    #expect(queue.lostCount > 20 && queue.eventCount + queue.lostCount == 40)
    #expect(queue.nextEvent(at: 0).flatMap { number($0.message) } == queue.lostCount)
  }
}
