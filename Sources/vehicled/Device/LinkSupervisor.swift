// Keeps one link of a device open: passes its events to the device and opens it again after a failure, with exponential
// backoff from 1 s to 60 s and jitter, so that many links do not reconnect at once. It opens the link earlier if the serial port
// appears, the network comes back or the Bluetooth peer advertises again.

import CLinux
import Protocols

@Loop final class LinkSupervisor: LinkOwner {
  /// The state of the link. `down` has a reason for the user.
  enum State {
    case down(String)
    case connecting
    case up
  }

  let role: LinkRole
  let url: LinkURL
  private(set) var state: State = .down("not started")
  /// The wall time of the last change of state, in µs.
  private(set) var since = Clock.wall()
  /// The wall time of the next attempt to connect, in µs, or nil if none is scheduled.
  private(set) var nextAttempt: Int64?

  /// How often the link has come up since the device was created.
  private(set) var connections = 0
  /// How many bytes the link has transferred since the device was created.
  private(set) var transferred = (received: 0, sent: 0)

  private unowned let device: Device
  private let links: LinkOpener
  private let guardian: Guardian
  private var link: (any Link)?
  /// The guardian's entry for this link, while the link has last-will frames.
  private(set) var guardedLink: Guardian.GuardedLink?
  private var backoff = Backoff()
  /// Whether the device's protocol state machine reset the link.
  private var wasReset = false
  private lazy var timer = Timer { [weak self] _ in self?.open() }
  /// The time of the next attempt, while the link waits for it.
  private var due: Instant?
  /// When the current attempt began.
  private var opened: Instant = 0

  /// The minimum interval between extra attempts. udev creates a port and then sets its permissions, which are two events.
  private var extraInterval: Nanoseconds { if case .serial = url.transport { 100 * .millisecond } else { .second } }
  /// A connection attempt that has taken longer than this is restarted when the network comes back: its local address may be gone, and
  /// the kernel retransmits the connection request only after seconds.
  private static let maxConnectDuration: Nanoseconds = 2 * .second

  init(_ role: LinkRole, _ url: LinkURL, device: Device, links: LinkOpener, guardian: Guardian) {
    self.role = role
    self.url = url
    self.device = device
    self.links = links
    self.guardian = guardian
  }

  var name: LinkName { role.name }
  /// A message for the user: what the link is waiting for while it is connecting.
  var waitReason: String? { link?.waitReason }
  var details: [String: String] { link?.details ?? [:] }
  /// A problem of the link while it is up, with its remedy.
  var problem: String? { isUp ? link?.problem : nil }

  var isUp: Bool {
    if case .up = state { true } else { false }
  }

  /// Why the link is not up, or nil while it is.
  var downReason: String? {
    switch state {
    case .up: nil
    case .connecting: waitReason ?? "connecting"
    case .down(let reason): reason
    }
  }

  /// Starts connecting now, regardless of the backoff.
  func open() {
    guard link == nil else { return }
    setTimer(nil)
    // Starts watching before the attempt, so that no change is missed between a failure and the wait.
    links.watch(url, as: role, for: self) { [weak self] in self?.connectSoon() }
    opened = Clock.monotonic()
    change(.connecting)
    link = links.open(url, for: self, as: role)
  }

  /// Closes the link and keeps it down.
  func close(_ reason: String) {
    setLastWill(nil)
    link?.close()
    link = nil
    setTimer(nil)
    links.stopWatching(for: self)
    backoff = Backoff()
    change(.down(reason))
  }

  private func setTimer(_ moment: Instant?) {
    due = moment
    timer.set(moment)
  }

  /// Opens a waiting link, or restarts a slow connection attempt, because the link may be reachable again.
  private func connectSoon() {
    let now = Clock.monotonic()
    if let due {
      let moment = backoff.nextAttempt(at: now, interval: extraInterval)
      if moment <= now { return open() }
      guard moment < due else { return }
      setTimer(moment)
      nextAttempt = Clock.wall() + (moment - now) / .microsecond
      device.portDetailsChanged(self)
    } else if case .tcp = url.transport, case .connecting = state, now - opened >= Self.maxConnectDuration {
      link?.close()
      link = nil
      open()
    }
  }

  /// Closes the link and opens it again after the backoff delay.
  func reset(_ reason: String) {
    guard let link else { return }
    wasReset = true
    guard !link.disconnectPeer(reason) else { return }
    setLastWill(nil)
    link.close()
    linkWentDown(reason, final: false)
  }

  /// Sets the frames that the guardian sends over the link if the daemon dies or freezes. They are discarded when the link goes down.
  func setLastWill(_ will: LastWill?) {
    if let guardedLink { guardian.release(guardedLink) }
    guardedLink = nil
    guard let will, let descriptor = link?.descriptor else { return }
    guardedLink = guardian.register(will, over: descriptor) { [weak device] in device?.revokeLease($0) }
    device.lastWillChanged(self)
  }

  /// The number of sent bytes that the peer has not acknowledged; nil if the kernel does not report it for this kind of link.
  var backlog: Int? {
    guard let descriptor = link?.descriptor else { return nil }
    let count = clinux_unsent(descriptor)
    return count < 0 ? nil : Int(count)
  }

  /// Changes the baud rate of a serial line. For the backoff, the link counts as up only from now on.
  func setBaud(_ baud: Int) {
    backoff.linkCameUp(at: Clock.monotonic())
    link?.setBaud(baud)
  }

  /// Restricts the frames that the link receives, until it goes down.
  func setFilter(_ filters: [CANFilter]) { link?.setFilter(filters) }

  func send(_ bytes: [UInt8], id: SendID?) {
    guard case .up = state, let link else {
      if let id { device.handle(.sent(id, failure: "the link is down")) }
      return
    }
    transferred.sent += bytes.count
    link.send(bytes, id: id)
  }

  func linkCameUp(maximumSend: Int?) {
    backoff.linkCameUp(at: Clock.monotonic())
    links.stopWatching(for: self)
    wasReset = false
    connections += 1
    change(.up)
    device.handle(.linkChanged(name, .up(maximumSend: maximumSend, baud: link?.baud)))
  }

  func linkReceived(_ bytes: [UInt8]) {
    transferred.received += bytes.count
    device.received(bytes, from: self)
  }

  func linkReceived(_ bytes: [UInt8], at time: Instant) {
    transferred.received += bytes.count
    device.received(bytes, from: self, at: time)
  }

  func linkSent(_ id: SendID, failure: String?) {
    device.handle(.sent(id, failure: failure))
  }

  func linkDetailsChanged() { device.portDetailsChanged(self) }
  func linkRejectedPeer(_ description: String) { device.handle(.linkChanged(name, .refused(description))) }

  func linkLostPeer(_ reason: String) {
    setLastWill(nil)
    change(.down(reason))
    if link != nil { change(.connecting) }
  }

  func linkWentDown(_ reason: String, final: Bool) {
    setLastWill(nil)
    link = nil
    guard !final else {
      links.stopWatching(for: self)
      return change(.down(reason))
    }
    let wait = backoff.linkWentDown(at: Clock.monotonic(), wasReset: wasReset)
    let jittered = wait == Backoff.first ? wait : Int64(Double(wait) * Double.random(in: 0.75...1))
    links.watch(url, as: role, for: self) { [weak self] in self?.connectSoon() }
    setTimer(Clock.monotonic() + jittered)
    change(.down(reason), nextAttemptIn: jittered)
  }

  private func change(_ new: State, nextAttemptIn wait: Nanoseconds? = nil) {
    let old = state
    state = new
    since = Clock.wall()
    nextAttempt = wait.map { since + $0 / .microsecond }
    device.portChanged(self, from: old)
  }
}
