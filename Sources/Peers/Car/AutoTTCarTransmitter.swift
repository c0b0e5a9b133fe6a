// The frames that the simulated car sends, and the pictures of its video server.
// Source: TCP.py, mainLoop.py and Status.py of task123/AutoTT; the README of task123/AutoTTApp for the dialect `documented`.

import Protocols

extension AutoTTCar {
  private static let healthCheckInterval: Nanoseconds = 3 * .second
  /// The length in bytes of the message of the fault `endless`.
  private static let endlessLength = 1 << 20

  /// A frame in the format of the dialect.
  func frame(_ type: String, _ body: String) -> [UInt8] { Array("\(type)#$#\(body)%^%\(dialect == .asBuilt ? "\r\n" : "")".utf8) }

  /// The frames sent to a new client, each with its due time: the Gyro interval, the list of modes (twice), and any frames that faults
  /// add.
  func greeting(from start: Instant) -> [(due: Instant, bytes: [UInt8])] {
    var frames: [(Nanoseconds, [UInt8])] = []
    if hasFault(.oddGyro) { frames += ["nan", "-1", "0", "1e9"].map { (0, frame("Gyro", $0)) } }
    if !hasFault(.mute) { frames.append((0, frame("Gyro", dialect == .asBuilt ? "0.0166666666667" : "0.05"))) }
    if dialect == .asBuilt {
      let list = frame("Modes", modes.map(\.name).joined(separator: ";"))
      frames += [(10 * .millisecond, list), (210 * .millisecond, list)]
    }
    if hasFault(.endless) {
      frames.append((300 * .millisecond, Array("Message#$#".utf8) + [UInt8](repeating: 0x61, count: AutoTTCar.endlessLength)))
    }
    if hasFault(.delimitersInMessage) {
      frames.append((.second, frame("Message", "Turn left; then right; then wait.")))
      frames.append((.second + 10 * .millisecond, frame("Message", "This message contains the delimiter #$#.")))
    }
    return frames.map { (start + (isInstant ? 0 : $0.0), $0.1) }
  }

  /// The body of a Status frame.
  func status(at now: Instant) -> String {
    let status = carStatus(at: now)
    let items = hasFault(.oddStatus) ? status.oddItems : status.items(usageHasEscapes: hasFault(.ansi))
    let text = items.joined(separator: ";")
    return hasFault(.comma) ? String(text.map { $0 == "." ? "," : $0 }) : text
  }

  private func carStatus(at now: Instant) -> SimulatedCarStatus {
    SimulatedCarStatus(Double(now - connectedAt) / 1e9, isFlat: hasFault(.flat), isHot: hasFault(.warn))
  }

  /// Checks the limits and sends warnings. In AutoTT's program, a separate thread does this, independently of the receiving thread.
  mutating func checkHealth(at now: Instant) {
    guard let due = nextHealthCheck, now >= due else { return }
    nextHealthCheck = due + ((now - due) / AutoTTCar.healthCheckInterval + 1) * AutoTTCar.healthCheckInterval
    let status = carStatus(at: now)
    if status.temperature < SimulatedCarStatus.rearmTemperature { sentWarnings.remove("hot") }
    if status.temperature > SimulatedCarStatus.maxTemperature, sentWarnings.insert("hot").inserted {
      // The misspelling is the original's.
      send(frame("Message", "The CPU temperatur is over \(SimulatedCarStatus.maxTemperature.fixed(6)) C."), at: now)
    }
    if status.motorVoltage < SimulatedCarStatus.minMotorVoltage, sentWarnings.insert("motors").inserted {
      let limit = SimulatedCarStatus.minMotorVoltage.fixed(2)
      send(frame("Message", "The voltage on the battery driving the motors is under \(limit) V"), at: now)
    }
    if status.piVoltage < SimulatedCarStatus.minPiVoltage, sentWarnings.insert("pi").inserted {
      let limit = SimulatedCarStatus.minPiVoltage.fixed(2)
      send(frame("Message", "The voltage on the battery driving the raspberry pi is under \(limit) V"), at: now)
    }
  }

  /// Sends bytes like one call of sendall(). The fault `split` splits them; the fault `coalesce` combines them with those of the next call.
  mutating func send(_ bytes: [UInt8], at now: Instant) {
    guard programState != .waiting, programState != .ended else { return }
    if heldBack.isEmpty, hasFault(.coalesce) { return heldBack = bytes }
    let bytes = heldBack + bytes
    heldBack = []
    guard hasFault(.split) else { return sendQueue.add(bytes, at: now) }
    let cut = Int.random(in: 1..<bytes.count, using: &random)
    sendQueue.add(Array(bytes[..<cut]), at: now)
    sendQueue.add(Array(bytes[cut...]), at: now + 15 * .millisecond)
  }

  /// Sends the frames that are due.
  mutating func sendDue(at now: Instant, _ effects: inout Effects) {
    while let first = scheduledFrames.first, first.due <= now { send(scheduledFrames.removeFirst().bytes, at: now) }
    sendQueue.flush(at: now, &effects)
  }

  // MARK: The video server

  /// Completes a send to a video client.
  mutating func feedSent(_ id: SendID, failed: Bool, at now: Instant) {
    for name in Array(feeds.keys) {
      if feeds[name]?.sent(id) == true, !failed { pictureFetched(at: now) }
    }
  }

  /// Sends due pictures and pages to the video clients, and closes completed connections.
  mutating func serveFeeds(at now: Instant, _ effects: inout Effects) {
    for name in feeds.keys.sorted(by: { $0.description < $1.description }) {
      guard var feed = feeds[name] else { continue }
      let picture = CarPicture(size: pictureSize, number: pictureCount)
      switch feed.next(lastFeedSend &+ 1, isStreaming: isStreaming, at: now, picture: { picture.jpeg }) {
      case .nothing: break
      case .send(let bytes):
        lastFeedSend = max(lastFeedSend &+ 1, AutoTTCar.firstFeedSend)
        pictureCount &+= 1
        effects.send(name, bytes, lastFeedSend)
      case .close:
        feeds[name] = nil
        effects.append(.resetLink(name, reason: "reply complete"))
        continue
      }
      feeds[name] = feed
    }
  }
}
