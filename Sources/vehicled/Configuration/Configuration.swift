// The checked configuration: access to the socket, and the devices. A plain value; a reload compares two of them, device by device.
// The keys are in ConfigurationKeys.

import ConfigurationFiles
import Logging
import Protocols

struct Configuration: Equatable, Sendable {
  /// The control socket and the access to it.
  struct Control: Equatable, Sendable {
    /// The path, or nil for the default.
    var socket: String?
    /// The rights for the daemon and all devices.
    var lists = AccessLists.default
    /// Additional rights for one device, by its name. Not part of `Device`: a change does not restart the device.
    var devices: [String: AccessLists] = [:]
    /// Whether polkit decides instead of the lists.
    var usesPolkit = false
  }

  /// The groups and users that have each right.
  struct AccessLists: Equatable, Sendable {
    /// Groups that may read.
    var observe: [String] = []
    /// Groups that may also set and call.
    var control: [String] = []
    /// Groups that may also drive.
    var drive: [String] = []
    /// Users that may read, by name or UID.
    var observeUsers: [String] = []
    /// Users that may also set and call.
    var controlUsers: [String] = []
    /// Users that may also drive.
    var driveUsers: [String] = []
    /// Whether `drive` or `drive-users` is set. If so, only the groups and users in them may drive; otherwise, those in `control` and
    /// `control-users` may.
    var limitsDriving = false
    /// Groups that are in the lists only by default. They need not exist: the package may not be installed.
    var optionalGroups: Set<String> = []

    /// The lists if `[control]` sets none of them.
    static let `default` = AccessLists(
      observe: ["vehicled", "vehicled-observe"], control: ["vehicled"], optionalGroups: ["vehicled", "vehicled-observe"])
  }

  /// One device. A reload does not affect a device whose configuration is unchanged.
  struct Device: Equatable, Sendable {
    var name: String
    /// The name of a known kind.
    var kind: String
    var links: [LinkName: LinkURL]
    /// The checked values of the kind's options, including defaults.
    var options: [String: Value]
    /// The contents of the device's secret files. A changed secret counts as a changed configuration.
    var secrets: [String: SecretBytes] = [:]
    /// The device's subsections, by section name.
    var sections: [String: [Setup.Subsection]] = [:]
    /// Whether every byte on its links is recorded under the state directory.
    var record = false

    /// The parameters from which its state machine is created.
    var setup: Setup {
      Setup(device: name, options: options, secrets: secrets, sections: sections, links: links.mapValues { "\($0)" })
    }
  }

  var logLevel: Logger.Level?
  var control = Control()
  /// In the order of the file.
  var devices: [Device] = []
}

extension Configuration {
  static let defaultPath = "/etc/vehicled/vehicled.toml"

  /// Reads FILE, then FILE.d/*.toml, then the files in the folders of the kinds, such as signals.d, beside FILE. The error contains the
  /// problems of all files.
  static func load(_ path: String = defaultPath, kinds: [Kind]) throws(ConfigurationError) -> Configuration {
    var problems: [ConfigurationProblem] = []
    let root = ConfigurationFile.merged(path, examples, &problems)
    var check = ConfigurationCheck(kinds: kinds, isComplete: problems.isEmpty)
    for folder in Set(kinds.flatMap(\.sections).compactMap(\.folder)).sorted() {
      do {
        for file in try ConfigurationFile.all(in: folder, beside: path, examples) {
          do throws(ConfigurationProblem) {
            check.shared[folder, default: []].append(try file.table())
          } catch {
            problems.append(error)
          }
        }
      } catch {
        problems.append(error)
      }
    }
    let configuration = check.configuration(root)
    problems += check.problems
    guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    return configuration
  }
}
