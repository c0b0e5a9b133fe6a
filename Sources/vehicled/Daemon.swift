// The daemon as a whole: creates the configured devices, serves the socket, and on a reload changes only the devices whose
// configuration changed. Independent of the kinds of device.

import Logging
import Protocols
import ServiceRuntime
import Varlink

@Loop final class Daemon {
  private let path: String
  private let socket: String
  private let log = Logger(label: "vehicled")
  private let hub = DeviceHub()
  private let disk: Disk
  private let blueZ = BlueZ(SystemBus())
  private let guardian = Guardian()
  private let http = HTTPClient()
  private let methods: Methods
  private var configuration: Configuration
  private var devices: [Entry] = []
  /// The number of removed devices that have not closed their links yet.
  private var closingCount = 0
  private var watchdog: Watchdog?
  private var listener: Listener?

  private struct Entry {
    let configuration: Configuration.Device
    let device: Device
    let recorder: TrafficRecorder?
    var isOpen = false
  }

  /// Creates a daemon with this configuration, which was read from `path`.
  init(_ configuration: Configuration, path: String, socket: String, state: String) {
    self.path = path
    self.socket = socket
    self.configuration = configuration
    disk = Disk(directory: state)
    methods = Methods(hub: hub, access: Access(configuration.control), blueZ: blueZ, directory: state)
    methods.reload = { [unowned self] in reload() }
  }

  /// Serves the socket, then opens the devices: clients get replies even while links are down.
  func start() async throws(ValueError) {
    listener = try await Listener.start(path: socket, methods)
    do { try await disk.lock() } catch {
      await listener?.close()
      throw error
    }
    configuration.devices.forEach(add)
    open()
    await withCheckedContinuation { continuation in checkAccessLists { continuation.resume() } }
    watchdog = Watchdog(disk: disk, http: http)
    log.notice("serving \(socket) with \(devices.count) \(devices.count == 1 ? "device" : "devices")")
    Notify.send("READY=1")
    notifyStatus()
  }

  /// Reloads the configuration and returns the names of the changed devices and settings. An invalid file changes nothing.
  func reload() -> Result<Contract.Reload.Result, ContractError> {
    Notify.send("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonic() / .microsecond)")
    defer {
      Notify.send("READY=1")
      notifyStatus()
    }
    let new: Configuration
    do { new = try Configuration.load(path, kinds: registry) } catch {
      for problem in error.problems { log.error("\(problem)") }
      log.error("configuration rejected; keeping the running one")
      return .failure(.configurationInvalid(message: error.description))
    }
    let before = Set(devices.map(\.configuration.name))
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
    hub.sort(by: new.devices.map(\.name))
    open()
    if new.control != configuration.control {
      methods.access = Access(new.control)
      if new.control.socket != configuration.control.socket { log.warning("socket path changed: takes effect after a restart of vehicled") }
      changed.append("control")
    } else {
      methods.recheckStreamsAfterNameChange()
    }
    if let level = new.logLevel, level != configuration.logLevel {
      Journal.level = level
      changed.append("log-level")
    }
    configuration = new
    checkAccessLists()
    log.notice("configuration reloaded; changed: \(changed.isEmpty ? "nothing" : changed.joined(separator: ", "))")
    let after = Set(devices.map(\.configuration.name))
    return .success(
      Contract.Reload.Result(
        changed: changed, added: changed.filter { after.contains($0) && !before.contains($0) },
        removed: changed.filter { before.contains($0) && !after.contains($0) }))
  }

  /// Ends all motion leases, answers pending calls, lets every device run its shutdown sequence, and syncs the disk. The time limits of
  /// these steps add up to 2.5 s.
  func stop() async {
    Notify.send("STOPPING=1")
    log.notice("stopping")
    for entry in devices { entry.device.revokeLease("the daemon is stopping") }
    await listener?.close()
    await methods.finish(within: 200 * .millisecond)
    await withCheckedContinuation { continuation in
      var remaining = devices.count
      guard remaining > 0 else { return continuation.resume() }
      for entry in devices {
        entry.device.close {
          entry.recorder?.close()
          remaining -= 1
          if remaining == 0 { continuation.resume() }
        }
      }
    }
    // Commands that were running ended with their devices; their replies are sent now.
    await methods.finish(within: 100 * .millisecond)
    http.close()
    await blueZ.close()
    await disk.finish()
  }

  /// Creates a configured device. `open` opens it.
  private func add(_ configured: Configuration.Device) {
    guard let kind = registry.first(where: { $0.name == configured.kind }) else { return }
    var setup = configured.setup
    // Consecutive devices do their periodic work in different tenths of the period, which spreads the load.
    setup.phase = Double(devices.count % 10) / 10
    setup.seed = .random(in: 0 ... .max)
    do throws(OptionError) {
      let links = kind.links.compactMap { role in configured.links[role.name].map { (role, $0) } }
      let device = Device(
        name: configured.name, kind: configured.kind, machine: try kind.make(setup), links: links, warning: kind.warning?(setup),
        services: Device.Services(disk: disk, links: LinkOpener(disk: disk, blueZ: blueZ), guardian: guardian, http: http))
      device.queueCommandsUntilOpen()
      if let warning = device.warning { device.log.logger.warning("\(warning)") }
      let recorder = configured.record ? TrafficRecorder(device, disk: disk) : nil
      devices.append(Entry(configuration: configured, device: device, recorder: recorder))
      hub.add(device)
    } catch {
      log.error("\(configured.name): \(error.option.map { "\($0): " } ?? "")\(error.message)")
    }
  }

  private func remove(_ entry: Entry) {
    hub.remove(entry.device)
    closingCount += 1
    entry.device.close("device reconfigured or removed") { [self] in
      entry.recorder?.close()
      closingCount -= 1
      open()
    }
  }

  /// Opens new devices once all removed devices have closed their links and stored their values.
  private func open() {
    guard closingCount == 0 else { return }
    for index in devices.indices where !devices[index].isOpen {
      devices[index].isOpen = true
      let device = devices[index].device
      disk.restore(device: device.name) { device.open(restored: $0) }
    }
  }

  /// Warns about names in the access lists that do not exist or cannot be looked up.
  private func checkAccessLists(then finish: @escaping @Loop @Sendable () -> Void = {}) {
    let access = methods.access
    methods.nameService.find(access.queries) { [self] answers in
      for warning in access.problems(answers) { log.warning("\(warning)") }
      finish()
    }
  }

  private func notifyStatus() {
    Notify.status("\(devices.count) \(devices.count == 1 ? "device" : "devices"): \(devices.map(\.device.name).joined(separator: ", "))")
  }
}
