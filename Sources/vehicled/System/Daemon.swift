// The daemon as a whole: makes the devices that the configuration names, serves the socket, and changes only what a new
// configuration changes. Holds no device knowledge.

import Logging
import NIOCore
import Protocols

@Loop final class Daemon {
  private let path: String
  private let socket: String
  private let log = Logger(label: "vehicled")
  private let board = Board()
  private let equipment: Equipment
  private let methods: Methods
  private var configuration: Configuration
  private var devices: [Entry] = []
  /// How many devices that were removed are still about to close their links.
  private var closing = 0
  private var watchdog: Watchdog?
  private var listener: Listener?

  private struct Entry {
    let configuration: Configuration.Device
    let device: Device
    let recorder: Recorder?
    var isOpen = false
  }

  /// A daemon of this configuration, read from `path`.
  init(_ configuration: Configuration, path: String, socket: String, state: String) {
    self.path = path
    self.socket = socket
    self.configuration = configuration
    equipment = Equipment(disk: Disk(directory: state), blueZ: BlueZ(SystemBus()), guardian: Guardian(), http: HTTPClient())
    methods = Methods(
      board: board, access: Access(configuration.control), blueZ: equipment.blueZ, directory: state)
    methods.reload = { [unowned self] in reload() }
  }

  /// Serves the socket, then brings the devices up. The socket comes first: it answers while every link is dead.
  func start() async throws(ValueError) {
    let methods = methods
    listener = try await Listener.start(path: socket) { channel in
      let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { Peer(socket: $0) }
      try channel.pipeline.syncOperations.addHandler(Session(methods, peer: peer ?? nil))
    }
    do { try await equipment.disk.lock() } catch {
      await listener?.close()
      throw error
    }
    configuration.devices.forEach(add)
    open()
    await withCheckedContinuation { continuation in share { continuation.resume() } }
    watchdog = Watchdog(disk: equipment.disk, http: equipment.http)
    log.notice("serving \(socket) with \(devices.count) \(devices.count == 1 ? "device" : "devices")")
    Notify.send("READY=1")
    tellStatus()
  }

  /// Reads the configuration again and gives the names of what changed. A bad file changes nothing.
  func reload() -> Result<[String], ContractError> {
    Notify.send("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonic() / .microsecond)")
    defer {
      Notify.send("READY=1")
      tellStatus()
    }
    let new: Configuration
    do { new = try Configuration.load(path, kinds: registry) } catch {
      for problem in error.problems { log.error("\(problem)") }
      log.error("the configuration is not taken; the running one stays")
      return .failure(.configurationInvalid(message: error.description))
    }
    var changed: [String] = []
    for entry in devices where !new.devices.contains(entry.configuration) {
      changed.append(entry.configuration.name)
      remove(entry)
    }
    devices.removeAll { !new.devices.contains($0.configuration) }
    for device in new.devices where !devices.contains(where: { $0.configuration.name == device.name }) {
      if !changed.contains(device.name) { changed.append(device.name) }
      add(device)
    }
    open()
    if new.control != configuration.control {
      methods.access = Access(new.control)
      if new.control.socket != configuration.control.socket { log.warning("a new socket path is used after a restart") }
      changed.append("control")
    } else {
      methods.reviewAccounts()
    }
    if let level = new.logLevel, level != configuration.logLevel {
      Journal.level = level
      changed.append("log-level")
    }
    configuration = new
    share()
    log.notice("configuration read again: \(changed.isEmpty ? "nothing changed" : "changed \(changed.joined(separator: ", "))")")
    return .success(changed)
  }

  /// Stops whatever is driven, answers whoever has called, lets every device say its last words, and leaves nothing behind. Takes at
  /// most two seconds.
  func stop() async {
    Notify.send("STOPPING=1")
    log.notice("stopping")
    for entry in devices { entry.device.revokeLease("the daemon stops") }
    await listener?.close()
    await methods.finish(within: 200 * .millisecond)
    await withCheckedContinuation { continuation in
      var left = devices.count
      guard left > 0 else { return continuation.resume() }
      for entry in devices {
        entry.device.close {
          entry.recorder?.close()
          left -= 1
          if left == 0 { continuation.resume() }
        }
      }
    }
    // Commands that were under way have ended with their devices.
    await methods.finish(within: 100 * .millisecond)
    equipment.http.close()
    await equipment.blueZ.close()
    await equipment.disk.finish()
  }

  private func add(_ wanted: Configuration.Device) {
    guard let kind = registry.first(where: { $0.name == wanted.kind }) else { return }
    var setup = wanted.setup
    // Devices take turns: neighbours in the file do their periodic work in different tenths of the period.
    setup.phase = Double(devices.count % 10) / 10
    setup.seed = .random(in: 0 ... .max)
    do throws(OptionError) {
      let links = kind.links.compactMap { role in wanted.links[role.name].map { (role, $0) } }
      let device = Device(
        name: wanted.name, kind: wanted.kind, machine: try kind.make(setup), links: links, caution: kind.caution?(setup),
        equipment: equipment)
      device.awaitOpening()
      if let caution = device.caution { device.log.warning("\(caution)") }
      devices.append(Entry(configuration: wanted, device: device, recorder: wanted.record ? Recorder(device, disk: equipment.disk) : nil))
      board.add(device)
    } catch {
      log.error("\(wanted.name): \(error.option.map { "\($0): " } ?? "")\(error.message)")
    }
  }

  private func remove(_ entry: Entry) {
    board.remove(entry.device)
    closing += 1
    entry.device.close("the device was configured anew, or is configured no longer") { [self] in
      entry.recorder?.close()
      closing -= 1
      open()
    }
  }

  /// Opens what is not open yet, once the ports and values of removed devices are free for it.
  private func open() {
    guard closing == 0 else { return }
    for index in devices.indices where !devices[index].isOpen {
      devices[index].isOpen = true
      let device = devices[index].device
      equipment.disk.restore(device: device.name) { device.open(restored: $0) }
    }
  }

  /// Opens the socket for those whom the access rules name, and warns about names that cannot be looked up.
  private func share(then finish: @escaping @Loop @Sendable () -> Void = {}) {
    if listener?.share(withEverybody: configuration.control.namesOthers) == false {
      log.warning("who is not in the socket's group cannot reach it: systemctl edit vehicled.socket, [Socket] SocketMode=0666")
    }
    let group = Accounts.Query.group("vehicled")
    let access = methods.access
    methods.accounts.find(access.queries.union([group])) { [self] answers in
      if case .number(let number)? = answers[group] { listener?.share(withGroup: number) }
      // Where nothing was installed there is no such group, and it is in the lists by default.
      let others = answers.filter { $0.key != group || $0.value != .absent }
      for problem in access.problems(others) { log.warning("\(problem)") }
      finish()
    }
  }

  private func tellStatus() {
    Notify.status("\(devices.count) \(devices.count == 1 ? "device" : "devices"): \(devices.map(\.device.name).joined(separator: ", "))")
  }
}
