// The log of one device: rate limited, and with one line for each reason why a link is down or waits, however often the link retries.

import Logging
import Protocols

@Loop final class DeviceLog {
  /// The logger of the device, without a rate limit.
  let logger: Logger
  private var limiter = LogRateLimiter()
  private lazy var timer: Timer = Timer { [weak self] now in
    guard let self else { return }
    limiter.endMinute(at: now).forEach(write)
    timer.set(limiter.due)
  }
  /// For each link that is down, the last logged reason.
  private var downReasons: [LinkName: String] = [:]
  /// The wait reasons logged for each link since it was last up.
  private var waitReasons: [LinkName: Set<String>] = [:]
  private static let maxWaitReasons = 32
  /// The problems logged for each link since it came up.
  private var problems: [LinkName: Set<String>] = [:]

  init(device name: String) {
    var logger = Logger(label: "vehicled")
    logger[metadataKey: "device"] = "\(name)"
    self.logger = logger
  }

  /// Logs a line, rate limited.
  func log(_ level: Logger.Level, _ text: String, of link: LinkName? = nil, isRecovery: Bool = false) {
    admit(LogRateLimiter.Line(level: level, text: text, link: link, isRecovery: isRecovery))
  }

  func log(event: String, _ text: String) { admit(LogRateLimiter.Line(level: .notice, text: text, event: event)) }

  func linkCameUp(_ link: LinkName, _ url: String) {
    downReasons[link] = nil
    waitReasons[link] = nil
    problems[link] = nil
    log(.notice, "link is up: \(url)", of: link, isRecovery: true)
  }

  /// Logs that a link went down, unless this reason was the last one logged. `isNotable` is false if the device is being closed and the
  /// link was not up; nothing is logged then.
  func linkWentDown(_ link: LinkName, _ reason: String, isNotable: Bool) {
    guard downReasons.updateValue(reason, forKey: link) != reason, isNotable else { return }
    log(.notice, "link is down: \(reason)", of: link)
  }

  func linkWaits(_ link: LinkName, _ reason: String) {
    guard waitReasons[link, default: []].count < Self.maxWaitReasons, waitReasons[link, default: []].insert(reason).inserted else { return }
    logger.info("\(reason)", metadata: ["link": "\(link)"])
  }

  /// Logs a problem of a link that is up, once.
  func linkHasProblem(_ link: LinkName, _ problem: String) {
    if problems[link, default: []].insert(problem).inserted { log(.warning, problem, of: link) }
  }

  /// Logs the summaries that are due at the end of the minute.
  func close() {
    limiter.endMinute(at: Clock.monotonic()).forEach(write)
    timer.set(nil)
  }

  private func admit(_ line: LogRateLimiter.Line) {
    if limiter.admit(line, at: Clock.monotonic()) { write(line) }
    timer.set(limiter.due)
  }

  private func write(_ line: LogRateLimiter.Line) {
    logger.log(level: line.level, "\(line.text)", metadata: line.link.map { ["link": "\($0)"] } ?? line.event.map { ["event": "\($0)"] })
  }
}
